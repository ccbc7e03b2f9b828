/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs: released by a wake-up, completed by going to sleep, continued where
 * the constant-bandwidth server's wake-up rule says so, and cut by a used-up
 * budget where a task is behind and does not sleep at all.
 */
#ifndef __TEMPONET_JOB_BPF_H
#define __TEMPONET_JOB_BPF_H

#include "agent.bpf.h"
#include "budget.bpf.h"
#include "fair.bpf.h"
#include "params.bpf.h"
#include "pressure.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TN_MAX_OFFENDERS);
	__type(key, u32);
	__type(value, struct temponet_offender);
} offenders SEC(".maps");

static void note_miss(struct task_struct *p, struct task_ctx *tctx, u64 late, u64 now)
{
	struct temponet_offender *row, fresh = {};
	u32 tid = p->pid;

	row = bpf_map_lookup_elem(&offenders, &tid);
	if (!row) {
		fresh.missed = tctx->missed;
		fresh.met = tctx->met;
		fresh.lateness_max_ns = late;
		fresh.last_miss_at = now;
		fresh.tgid = p->tgid;
		fresh.tier = tctx->job_class;
		__builtin_memcpy(fresh.comm, p->comm, sizeof(fresh.comm));
		bpf_map_update_elem(&offenders, &tid, &fresh, BPF_ANY);
		return;
	}
	row->missed = tctx->missed;
	row->met = tctx->met;
	row->last_miss_at = now;
	row->tier = tctx->job_class;
	if (late > row->lateness_max_ns)
		row->lateness_max_ns = late;
	__builtin_memcpy(row->comm, p->comm, sizeof(row->comm));
}

static void complete_job(struct task_struct *p, struct task_ctx *tctx, u64 end)
{
	struct temponet_class_stats *stats;
	u64 response, late;

	if (!tctx->open)
		return;
	tctx->open = false;
	stats = class_stats(tctx->job_class);
	response = since(end, tctx->release_at);
	late = since(end, tctx->deadline_at);
	stats->response_ns += response;
	if (response > stats->response_max_ns)
		stats->response_max_ns = response;
	if (!late) {
		stats->met++;
		tctx->met++;
		return;
	}
	stats->missed++;
	tctx->missed++;
	stats->lateness_ns += late;
	if (late > stats->lateness_max_ns)
		stats->lateness_max_ns = late;
	note_miss(p, tctx, late, end);
}

/* A job ended on this CPU: was it late? */
static void note_end(const struct task_ctx *tctx, u64 end)
{
	s32 cpu = bpf_get_smp_processor_id();

	if (!tctx->open || !time_after(end, tctx->deadline_at))
		return;
	note_late_end(dom_of(cpu), tctx->job_class == TN_DECLARED, end);
	note_late_end(cpu_lane(cpu), tctx->job_class == TN_DECLARED, end);
}

static void open_job(struct task_ctx *tctx)
{
	tctx->open = true;
	tctx->job++;
	tctx->job_class = tctx->base;
	class_stats(tctx->base)->released++;
}

static void release_job(struct task_ctx *tctx, u64 now)
{
	tctx->release_at = now;
	tctx->deadline_at = now + tctx->rel_deadline_ns;
	tctx->exec_ns = 0;
	tctx->budget_ns = tctx->runtime_ns;
	tctx->rolled = false;
	tctx->dropped = false;
	tctx->demoted = false;
	if (tctx->base != TN_BACKGROUND)
		open_job(tctx);
}

/*
 * The wake-up rule of the constant-bandwidth server: a task that blocked
 * half-way keeps its deadline unless what is left of its budget would then
 * exceed its declared share. Times are taken in units of 1024 ns so that the
 * products fit.
 *
 * A period after its last wake-up a task has come for its next job, even if it
 * overran the last one: what it ate ahead of time it ate below all declared
 * jobs, so they are not owed it back.
 */
static bool job_continues(const struct task_ctx *tctx, u64 now)
{
	u64 left, time;

	if (!tctx->open || !time_before(now, tctx->deadline_at) ||
	    since(now, tctx->woke_at) >= tctx->period_ns - tctx->period_ns / RELEASE_JITTER_DIV)
		return false;
	left = tctx->budget_ns > tctx->exec_ns ? tctx->budget_ns - tctx->exec_ns : 0;
	time = tctx->deadline_at - now;
	return (left >> 10) * (tctx->rel_deadline_ns >> 10) <=
	       (time >> 10) * (tctx->runtime_ns >> 10);
}

/* What an estimate says was eaten ahead is held against a task for TN_AGING at most:
 * its rhythm may be another by now. */
static void cap_throttling(struct task_ctx *tctx, u64 now)
{
	u64 ahead = since(tctx->release_at, now);

	if (tctx->base != TN_INFERRED || ahead <= TN_AGING)
		return;
	tctx->release_at -= ahead - TN_AGING;
	tctx->deadline_at -= ahead - TN_AGING;
}

/* The budget is used up: this job ends at @end, its successor begins. */
static void roll_job(struct task_struct *p, struct task_ctx *tctx, u64 budget, u64 end)
{
	note_end(tctx, end);
	complete_job(p, tctx, end);
	this_stats()->rollovers++;
	tctx->release_at += tctx->period_ns;
	tctx->deadline_at += tctx->period_ns;
	cap_throttling(tctx, end);
	tctx->exec_ns -= budget;
	tctx->budget_ns = tctx->runtime_ns;
	tctx->rolled = true;
	if (tctx->kept || slack(tctx, end) >= 0)
		tctx->dropped = false;
	open_job(tctx);
}

static void wake_job(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool used_up, stuck = tctx->stuck, goes_on = resumes_after_stuck(tctx, now);

	tctx->sleep = AWAKE;
	note_unstuck(tctx);
	if (goes_on)
		return;
	if (stuck)
		note_end(tctx, tctx->slept_at);
	used_up = tctx->exec_ns >= tctx->budget_ns;
	if (job_continues(tctx, now)) {
		/* It slept and came back before its next period with nothing left:
		 * the next job, but with the deadline that its share allows. */
		if (used_up) {
			settle_leeway(tctx, now);
			learn(tctx, now);
			roll_job(p, tctx, tctx->exec_ns, tctx->slept_at);
		}
		return;
	}
	complete_job(p, tctx, tctx->slept_at);
	settle_leeway(tctx, now);
	learn(tctx, now);
	refresh_params(p, tctx, now);
	release_job(tctx, now);
}

/*
 * Not a job after all: neither met nor missed. Among the hogs it begins with a turn
 * owed, or a stream of newcomers would stand before those who wait, and the clock
 * stand still.
 */
static void demote(struct task_ctx *tctx)
{
	u64 begin = vclock + TN_SLICE_BACKGROUND;

	if (time_before(tctx->vtime, begin))
		tctx->vtime = begin;
	tctx->demoted = true;
	tctx->open = false;
	this_stats()->demotions++;
}

/* The least budget of a job that runs behind schedule, as a part of its declared runtime: a few
 * very short jobs must not make every tick a job boundary. */
#define BEHIND_BUDGET_DIV 4

static void settle_budget(struct task_struct *p, struct task_ctx *tctx)
{
	u64 now;
	int i;

	if (tctx->base == TN_BACKGROUND || tctx->demoted || tctx->exec_ns < tctx->budget_ns / 2)
		return;

	/* Without a rhythm there is no next job to go on with. */
	if (tctx->base == TN_INFERRED && !steady(tctx)) {
		if (tctx->exec_ns > tctx->budget_ns)
			demote(tctx);
		return;
	}

	now = scx_bpf_now();
	for (i = 0; i < 4; i++) {
		u64 budget = tctx->runtime_ns;

		/* Behind schedule it does not sleep between jobs, and its jobs are
		 * as long as they usually are, not as long as they may be. */
		if ((tctx->rolled || time_after(now, tctx->deadline_at)) &&
		    tctx->samples >= 2) {
			budget = MIN(budget, tctx->burst_ns);
			budget = MAX(budget, tctx->runtime_ns / BEHIND_BUDGET_DIV);
		}
		if (tctx->exec_ns < budget + (tctx->runtime_ns >> GRACE_SHIFT))
			break;
		/* The next one is not due yet, and this one is within what was declared. */
		if (tctx->base == TN_DECLARED &&
		    time_before(now, tctx->release_at + tctx->period_ns) && !over_share(tctx, now))
			break;
		roll_job(p, tctx, budget, now - (tctx->exec_ns - budget));
	}
}

/*
 * Bring a running task's books up to date. The kernel's own clock of the task
 * is ahead of ours by what it ran since.
 */
static void account(struct task_struct *p, struct task_ctx *tctx)
{
	u64 total = p->se.sum_exec_runtime, ran = total - tctx->accounted_ns;

	tctx->accounted_ns = total;
	tctx->exec_ns += ran;
	tctx->burst_exec_ns += ran;
	tctx->awake_ns += ran;
	tctx->turn_left -= MIN(ran, tctx->turn_left);
	class_stats(tctx->run_tier)->run_ns += ran;
	/* What it runs like others does not count, or it would never have credit again. */
	if (tctx->bypass_queue)
		charge_agent(ran);
	if (tctx->run_tier == TN_BACKGROUND)
		tctx->vtime += ran * (100 * 1024) / (tctx->hog_weight ?: 100 * 1024);
	settle_budget(p, tctx);
}

#endif /* __TEMPONET_JOB_BPF_H */
