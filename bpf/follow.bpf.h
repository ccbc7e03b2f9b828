/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Following the agent among declared jobs that wait anyway. A fresh decision for this CPU comes
 * first. Without one, the agent's table ranks the first few jobs, but only where the agent promised
 * that any order meets all deadlines, or where not all can be met. Otherwise deadlines decide
 * (serve.bpf.h). So an agent that is silent, late or wrong costs quality, not progress.
 */
#ifndef __TEMPONET_FOLLOW_BPF_H
#define __TEMPONET_FOLLOW_BPF_H

#include "board.bpf.h"
#include "pressure.bpf.h"
#include "queue.bpf.h"
#include "serve.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* How many tasks of a queue are searched for a decided one, and how many are ranked. */
#define FOLLOW_SCAN 64
#define RANK_FIRST 8

/* The value of a job by the agent's table, or by the distilled one: more is better. */
static s64 table_score(const struct task_ctx *tctx, u32 level, u64 now)
{
	const struct temponet_table *table = level == TN_LEVEL_DISTILLED ?
						     &board.distilled :
						     &board.table;
	u32 class = tctx->criticality ? 1 : 0;
	u32 row = class * TN_SLACK_BINS + slack_bin(slack(tctx, now));

	return table->q[bounded(row * TN_WORK_BINS + work_bin(remaining(tctx)),
				TN_CLASSES * TN_SLACK_BINS * TN_WORK_BINS)];
}

/* May the task that @cpu runs stay, although a waiting job is due earlier? */
static bool trusted(s32 cpu, u64 now)
{
	return time_before(now, cpu_ctx(cpu)->trust_until);
}

enum taken {
	TAKEN_NOT, /* the task is not in the queue, or may not run here */
	TAKEN_STALE, /* the task is in the queue, but with another job */
	TAKEN,
};

/* Makes @task of @queue the next to run on @cpu. @task holds the pid in its upper half, and in its
 * lower half the low half of the job's number, or 0 for any job. */
__weak int take_task(u32 queue, u64 task, s32 cpu, u64 slice)
{
	u32 pid = task >> 32, job = task;
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 *walked = begin_walk();
	int taken = TAKEN_NOT;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (++*walked > FOLLOW_SCAN)
			break;
		if ((u32)p->pid != pid)
			continue;
		tctx = task_ctx(p);
		if (!tctx || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			break;
		if (job && (u32)tctx->job != job) {
			taken = TAKEN_STALE;
			break;
		}
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
			taken = TAKEN;
		break;
	}
	return taken;
}

/*
 * The best of the first few jobs by table: the pid, with the score (made positive) in the upper
 * half, or -1. With @masked a job counts only if all that stand before it can still be on time
 * after it.
 */
__weak s64 best_of_first(u32 queue, s32 cpu, u32 level, bool masked, u64 now)
{
	s64 best = -1, best_score = -(1LL << 40), margin = 1LL << 60;
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 *walked = begin_walk();
	u64 work = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		s64 score, left;

		if (++*walked > RANK_FIRST)
			break;
		tctx = task_ctx(p);
		if (!tctx)
			break;
		/* The verdict came after the job was queued here. */
		if (verdict(tctx, now) == TN_VERDICT_GIVE_UP)
			continue;
		left = remaining(tctx);
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && (!masked || left <= margin)) {
			score = table_score(tctx, level, now);
			if (score > best_score) {
				best_score = score;
				best = ((score + 32768) << 32) | (u32)p->pid;
			}
		}
		work += left;
		margin = MIN(margin, (s64)(tctx->deadline_at - now - work));
	}
	return best;
}

/* Counts why a decision could not be followed: its task runs already, or cannot run here. */
static void note_unfollowed(u32 pid)
{
	struct task_struct *p = bpf_task_from_pid(pid);
	struct task_ctx *tctx;

	if (p) {
		tctx = task_ctx(p);
		if (tctx && tctx->on_cpu) {
			this_stats()->duplicate++;
			bpf_task_release(p);
			return;
		}
		bpf_task_release(p);
	}
	this_stats()->impossible++;
}

/* Follows the agent's decision for @cpu. Returns one of enum served. */
__weak int follow_decision(s32 cpu, u32 dom, u32 prev_pid, u64 now)
{
	struct temponet_decision decision = {};
	u64 released = MAX(lane_released[bounded(dom, NR_LANES)],
			   lane_released[bounded(cpu_lane(cpu), NR_LANES)]);
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 task, made_at, expires;
	bool used;
	u32 pid;
	int taken;

	if (!read_decision(cpu, &decision))
		return SERVED_NONE;
	task = decision.task;
	made_at = decision.made_at;
	expires = decision.expires_at;
	pid = task >> 32;
	if (!pid)
		return SERVED_NONE;
	used = cpuc->followed == made_at;
	cpuc->followed = made_at;
	if (!decision_fresh(&decision, released, now)) {
		if (!used)
			this_stats()->stale++;
		return SERVED_NONE;
	}
	if (pid == prev_pid) {
		if (!used) {
			this_stats()->dispatches[TN_SRC_AGENT]++;
			note_age(made_at, now);
		}
		cpuc->trust_until = expires;
		return SERVED_KEEP;
	}
	/* The decision was followed before. Its job is done since, or was preempted. */
	if (used)
		return SERVED_NONE;
	taken = take_task(queue_id(dom, TN_DECLARED), task, cpu, TN_SLICE_JOB);
	if (taken == TAKEN_NOT)
		taken = take_task(queue_id(cpu_lane(cpu), TN_DECLARED), task, cpu, TN_SLICE_JOB);
	if (taken == TAKEN) {
		this_stats()->dispatches[TN_SRC_AGENT]++;
		note_age(made_at, now);
		cpuc->trust_until = expires;
		return SERVED_FOLLOWED;
	}
	if (taken == TAKEN_STALE)
		this_stats()->stale++;
	else
		note_unfollowed(pid);
	return SERVED_NONE;
}

/* Takes the best job by table. @free: for so long any order meets all deadlines, by the agent's
 * promise; 0: no promise. Returns SERVED_FOLLOWED or SERVED_NONE. */
__weak int follow_table(s32 cpu, u32 dom, u32 level, u64 free, u64 now)
{
	u32 shared = queue_id(dom, TN_DECLARED), own = queue_id(cpu_lane(cpu), TN_DECLARED);
	u64 slice = free ? MIN(free, TN_SLICE_JOB) : TN_SLICE_JOB;
	s64 in_shared = -1, in_own = -1;
	bool masked = !free;

	if (queue_len(shared))
		in_shared = best_of_first(shared, cpu, level, masked, now);
	if (queue_len(own))
		in_own = best_of_first(own, cpu, level, masked, now);
	if (in_shared < 0 && in_own < 0)
		return SERVED_NONE;
	if (take_task(in_own > in_shared ? own : shared, (u64)MAX(in_own, in_shared) << 32, cpu,
		      slice) != TAKEN)
		return SERVED_NONE;
	this_stats()->dispatches[level == TN_LEVEL_DISTILLED ? TN_SRC_DISTILLED : TN_SRC_TABLE]++;
	cpu_ctx(cpu)->trust_until = now + slice;
	return SERVED_FOLLOWED;
}

/* Was a short job queued in the lane since this was last asked? No decision can be about it, and
 * ranking would only delay it. So the next dispatch goes by deadlines. */
static bool short_job_came(u32 lane_id)
{
	bool *came = &lane_short_job[bounded(lane_id, NR_LANES)];

	if (!*came)
		return false;
	*came = false;
	return true;
}

/*
 * Serves the declared tier as the agent says. @prev_urg and @prev_pid are those of the running task
 * if it wants to go on. Returns SERVED_NONE where deadlines decide.
 */
__weak int follow(s32 cpu, u32 dom, u64 prev_urg, u32 prev_pid, u64 now)
{
	bool goes_on = urgency_tier(prev_urg) == TN_DECLARED;
	u32 level = current_level(now);
	u64 free;
	int served;

	if (level == TN_LEVEL_EDF)
		return SERVED_NONE;
	if (short_job_came(dom) || short_job_came(cpu_lane(cpu))) {
		cpu_ctx(cpu)->short_job_next = true;
		return SERVED_NONE;
	}
	if (level == TN_LEVEL_AGENT) {
		served = follow_decision(cpu, dom, goes_on ? prev_pid : 0, now);
		if (served != SERVED_NONE)
			return served;
	}
	/* A running job is preempted by an earlier deadline or a decision, not for a better
	 * score. */
	if (goes_on)
		return SERVED_NONE;
	if (level != TN_LEVEL_DISTILLED && !table_fresh(now))
		return SERVED_NONE;
	free = level == TN_LEVEL_DISTILLED ? 0 : free_for(now);
	if (!free && !overloaded(cpu, true, now))
		return SERVED_NONE;
	return follow_table(cpu, dom, level, free, now);
}

#endif /* __TEMPONET_FOLLOW_BPF_H */
