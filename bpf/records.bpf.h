/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records for the agent: the state of every task with a declared deadline, whenever it changes
 * while CPUs are contended. An uncontended machine emits none.
 */
#ifndef __TEMPONET_RECORDS_BPF_H
#define __TEMPONET_RECORDS_BPF_H

#include "board.bpf.h"
#include "load.bpf.h"
#include "queue.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TN_RING_BYTES);
} ring SEC(".maps");

/* For the test that loses records on purpose: so many of a thousand. */
const volatile u32 lose_permille;

static u64 emit_until;
static u64 rang_at;
/* A short job was released then: the bell would delay it, so it is rung when one has ended. */
static u64 bell_owed_at;

/* Records are emitted for declared tasks, and once when a task is no longer declared. */
static bool concerns_agent(const struct task_ctx *tctx)
{
	return tctx->base == TN_DECLARED || tctx->agent_knows;
}

static bool emitting(const struct task_ctx *tctx, u64 now)
{
	return agent_wanted() && concerns_agent(tctx) && time_before(now, emit_until);
}

/* It will have no more jobs. The kernel says so to us much later: when its last trace goes. */
static bool is_exiting(const struct task_struct *p)
{
	return p->flags & PF_EXITING;
}

static __always_inline void fill_record(struct temponet_record *record, struct task_struct *p,
					const struct task_ctx *tctx, s32 cpu, u32 flags, u64 now)
{
	record->at = now;
	record->monotonic = bpf_ktime_get_ns();
	record->start_time = p->start_time;
	record->release_at = tctx->release_at;
	record->deadline_at = tctx->deadline_at;
	record->rel_deadline_ns = tctx->rel_deadline_ns;
	record->period_ns = tctx->period_ns;
	record->exec_ns = tctx->exec_ns;
	/* Before some jobs were seen, what was declared says more. */
	record->cost_ns = tctx->samples >= 4 ? job_cost(tctx) : tctx->runtime_ns;
	record->spread_ns = tctx->samples >= 4 ? tctx->burst_dev_ns : 0;
	record->job = tctx->job;
	record->pid = p->pid;
	record->tgid = p->tgid;
	record->cpu = cpu;
	record->flags = flags | (pinned(p) ? TN_REC_PINNED : 0) |
			(is_exiting(p) ? TN_REC_EXITED : 0) |
			(tctx->base == TN_DECLARED ? TN_REC_DECLARED : 0);
	record->criticality = tctx->criticality;
	record->reserved = 0;
	__builtin_memcpy(record->comm, p->comm, sizeof(record->comm));
	/* On a kernel for fewer CPUs the mask is shorter than what is read here;
	 * the agent knows how many CPUs there are. */
	if (bpf_probe_read_kernel(record->allowed, sizeof(record->allowed), p->cpus_ptr))
		__builtin_memset(record->allowed, 0xff, sizeof(record->allowed));
}

/* @bell: wake the agent, unless it said that it is not to be. */
static __always_inline void emit_record(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u32 flags,
				 bool bell, u64 now)
{
	struct temponet_record *record;
	u64 wake = BPF_RB_NO_WAKEUP;

	if (lose_permille && bpf_get_prandom_u32() % 1000 < lose_permille)
		record = NULL;
	else
		record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&board.untold, 1);
		this_stats()->untold++;
		return;
	}
	fill_record(record, p, tctx, cpu, flags, now);
	tctx->agent_knows = tctx->base == TN_DECLARED;
	this_stats()->told++;
	if (bell && (!time_before(now, board.ring_after) ||
		     since(now, rang_at) >= TN_AGENT_LOST)) {
		wake = BPF_RB_FORCE_WAKEUP;
		rang_at = now;
		this_stats()->rung++;
		if (!rung_at)
			rung_at = now;
	} else if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > TN_RING_BYTES / 2) {
		/* Once it is full there is nothing left to ring with. */
		wake = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(record, wake);
}

/*
 * A short job that was released just now. It would be over before a decision, and to tell of it
 * would only delay it: it is told of when it has ended, or if that takes longer.
 */
static bool soon_over(const struct task_ctx *tctx, u64 now)
{
	return short_job(tctx) && since(now, tctx->release_at) < TN_SHORT_JOB_RUNTIME;
}

/* The task's standing has changed. */
static __always_inline void emit_change(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					u32 flags, u64 now)
{
	if (emitting(tctx, now) && (flags & TN_REC_EXITED || !soon_over(tctx, now)))
		emit_record(p, tctx, cpu, flags, false, now);
}

/* A declared job found no CPU: this is what the agent is for. */
static __always_inline void emit_contention(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					    bool news, u64 now)
{
	u32 flags = TN_REC_RUNNABLE;

	if (!agent_wanted())
		return;
	if (!time_before(now, emit_until))
		flags |= TN_REC_FIRST;
	emit_until = now + TN_EMIT_FOR;
	/* Where they are so far behind that none ends, it is rung after all. */
	if (news && short_job(tctx) && since(now, bell_owed_at ?: now) < TN_AGENT_YIELDS) {
		bell_owed_at = bell_owed_at ?: now;
		news = false;
	}
	if (!news && !(flags & TN_REC_FIRST) && soon_over(tctx, now))
		return;
	emit_record(p, tctx, cpu, flags, news, now);
}

/* The task sleeps: its job is done. */
static __always_inline void emit_end(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool bell = bell_owed_at;

	if (!emitting(tctx, now))
		return;
	if (bell)
		bell_owed_at = 0;
	emit_record(p, tctx, tctx->cpu, 0, bell, now);
}

/*
 * A declared job found no idle CPU. Where it pushes nobody but a hog aside, or all are on
 * time anyway, there is nothing to decide, and to wake the agent would only delay the job.
 */
static __always_inline void note_release(struct task_struct *p, struct task_ctx *tctx, u32 queue,
					 s32 cpu, s32 victim, u64 now)
{
	u32 victim_tier = victim >= 0 ? urgency_tier(cpu_ctx(victim)->urgency) : TN_DECLARED;
	bool news;

	if (!agent_wanted())
		return;
	/* What was running and makes room is not news; for a short job it soon runs again. */
	news = tctx->emitted_job != tctx->job;
	if (!news && cpu_ctx(bpf_get_smp_processor_id())->short_job_next)
		return;
	if (news) {
		u32 lane_id = bounded(queue / TN_NR_TIERS, NR_LANES);

		tctx->emitted_job = tctx->job;
		lane_released[lane_id] = now;
		if (short_job(tctx))
			lane_short_job[lane_id] = true;
	}
	if (victim_tier == TN_INFERRED || victim_tier > TN_LATE || feasible(cpu, now))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE, now);
	else
		emit_contention(p, tctx, cpu, news, now);
}

/* The kernel's truth about all of them, for an agent that lost the thread. */
SEC("iter/task")
int emit_all(struct bpf_iter__task *ctx)
{
	struct temponet_record record = {};
	struct task_struct *p = ctx->task;
	struct task_ctx *tctx;

	if (!p)
		return 0;
	tctx = task_ctx(p);
	if (!tctx || tctx->base != TN_DECLARED || is_exiting(p))
		return 0;
	/* Not every kernel lets an iterator read our clock: the other one tells. It is
	 * read before all else: what changes meanwhile is told with a later time. */
	fill_record(&record, p, tctx, tctx->cpu, 0, 0);
	if (tctx->sleep == AWAKE)
		record.flags |= TN_REC_RUNNABLE;
	if (tctx->on_cpu)
		record.flags |= TN_REC_RUNNING;
	tctx->agent_knows = true;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

#endif /* __TEMPONET_RECORDS_BPF_H */
