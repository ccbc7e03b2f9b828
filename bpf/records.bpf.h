/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records for the agent: the state of a task with a declared deadline, whenever it changes while
 * declared jobs contend for CPUs. An uncontended machine emits none and lets the agent sleep. A
 * ring ("the bell") is a record that also wakes the agent.
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

/* For tests: so many of a thousand records are lost on purpose. */
const volatile u32 lose_permille;

/* Records are emitted until this; each contention puts it off. */
static u64 emit_until;
/* When the agent was last rung for. */
static u64 rang_at;
/* When a short job was released without the bell, which would have delayed it; 0: none was. The
 * bell is rung when the next job ends. */
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
	/* Before a few jobs were seen, the declared runtime says more. */
	record->cost_ns = tctx->samples >= RHYTHM_SAMPLES ? job_cost(tctx) : tctx->runtime_ns;
	record->spread_ns = tctx->samples >= RHYTHM_SAMPLES ? tctx->burst_dev_ns : 0;
	record->declared_ns = tctx->runtime_ns;
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
	/* A kernel built for fewer CPUs has a shorter mask than is read here. The agent ignores the
	 * excess: it knows how many CPUs there are. */
	if (bpf_probe_read_kernel(record->allowed, sizeof(record->allowed), p->cpus_ptr))
		__builtin_memset(record->allowed, 0xff, sizeof(record->allowed));
}

/* A flag of ours beside those of a record: the agent is to be woken. */
#define EMIT_BELL (1U << 31)

/* Emits a record. With EMIT_BELL it wakes the agent, unless the agent asked not to be woken yet.
 * That holds for TN_AGENT_LOST at most. */
__weak int emit_record(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       s32 cpu, u32 flags, u64 now)
{
	bool bell = flags & EMIT_BELL;
	struct temponet_record *record;
	u64 wake = BPF_RB_NO_WAKEUP;

	if (lose_permille && bpf_get_prandom_u32() % 1000 < lose_permille)
		record = NULL;
	else
		record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&board.untold, 1);
		this_stats()->untold++;
		return 0;
	}
	fill_record(record, p, tctx, cpu, flags & ~EMIT_BELL, now);
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
		/* The agent is woken before the buffer is full: then no record, and so no bell,
		 * would find room. */
		wake = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(record, wake);
	return 0;
}

/*
 * Is this a short job that was released just now? It will be over before a decision, and a record
 * would only delay it. It is reported when it has ended, or at a tick if it takes longer.
 */
static bool soon_over(const struct task_ctx *tctx, u64 now)
{
	return short_job(tctx) && since(now, tctx->release_at) < TN_SHORT_JOB_RUNTIME;
}

/* The state of the task has changed. */
static __always_inline void emit_change(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					u32 flags, u64 now)
{
	if (emitting(tctx, now) && (flags & TN_REC_EXITED || !soon_over(tctx, now)))
		emit_record(p, tctx, cpu, flags, now);
}

/* A declared job found no CPU, and others contend with it. @news: its release is not noted yet. */
static __always_inline void emit_contention(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					    bool news, u64 now)
{
	u32 flags = TN_REC_RUNNABLE;

	if (!agent_wanted())
		return;
	if (!time_before(now, emit_until))
		flags |= TN_REC_FIRST;
	emit_until = now + TN_EMIT_FOR;
	/* The bell is put off for a short job, for TN_AGENT_YIELDS at most: where jobs are far
	 * behind, none may end in that time. */
	if (news && short_job(tctx) && since(now, bell_owed_at ?: now) < TN_AGENT_YIELDS) {
		bell_owed_at = bell_owed_at ?: now;
		news = false;
	}
	if (!news && !(flags & TN_REC_FIRST) && soon_over(tctx, now))
		return;
	emit_record(p, tctx, cpu, flags | (news ? EMIT_BELL : 0), now);
}

/* The task sleeps: its job is done. */
static __always_inline void emit_end(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool bell = bell_owed_at;

	if (!emitting(tctx, now))
		return;
	if (bell)
		bell_owed_at = 0;
	emit_record(p, tctx, tctx->cpu, bell ? EMIT_BELL : 0, now);
}

/*
 * A declared job found no idle CPU. Where it preempts a hog or an inferred job, or where all are on
 * time anyway, there is nothing to decide, and waking the agent would only delay the job: a wake-up
 * beside a hog took 82 us, and takes 60 us without the bell (docs/measurements/agent.md).
 */
static __always_inline void note_release(struct task_struct *p, struct task_ctx *tctx, u32 queue,
					 s32 cpu, s32 victim, u64 now)
{
	u32 victim_tier = victim >= 0 ? urgency_tier(cpu_ctx(victim)->urgency) : TN_DECLARED;
	bool news;

	if (!agent_wanted())
		return;
	/* A job that was preempted is not news. Preempted by a short job it will soon run again,
	 * and no record is needed. */
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

/* Emits a record of every declared task, for an agent that has lost records. */
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
	/* Not every kernel lets an iterator call scx_bpf_now(), so only the monotonic clock is in
	 * the record. It is read before the task's state: a change meanwhile is emitted with a
	 * later time, and so replaces this record. */
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
