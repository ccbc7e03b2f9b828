/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's part of the kernel's report when it is ejected: the state of queues, CPUs and
 * tasks, so that the cause of a stall can be found afterwards. Sysrq-D writes the same into the
 * trace buffer while the scheduler runs.
 */
#ifndef __TEMPONET_DUMP_BPF_H
#define __TEMPONET_DUMP_BPF_H

#include "agent.bpf.h"
#include "board.bpf.h"
#include "load.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"

/* How far @at lies in the future, in us; negative: in the past. */
static s64 us_until(u64 at, u64 now)
{
	return (s64)(at - now) / TN_USEC;
}

/* Prints the queues of a lane in which tasks wait. Count and length differ only for a moment, or
 * where the count is wrong (check_count()). */
static void dump_lane(const char *what, u32 id, u32 lane_id, u64 now)
{
	u32 tier;

	bpf_for(tier, 0, TN_NR_TIERS) {
		u32 queue = queue_id(lane_id, tier);

		if (queue_len(queue) || scx_bpf_dsq_nr_queued(queue) > 0)
			scx_bpf_dump("%s %u tier %u: %u counted, %d queued, served %lld us ago",
				     what, id, tier, queue_len(queue), scx_bpf_dsq_nr_queued(queue),
				     -us_until(*queue_served_at(queue), now));
	}
}

void BPF_STRUCT_OPS(temponet_dump, struct scx_dump_ctx *dctx)
{
	u64 now = scx_bpf_now();
	u32 dom;

	scx_bpf_dump("tiers: %u declared, %u inferred, %u late, %u background", TN_DECLARED,
		     TN_INFERRED, TN_LATE, TN_BACKGROUND);
	scx_bpf_dump("level %u, agent %u, rung %lld us ago, heartbeat %lld us ago", level_now,
		     agent_tid, rung_at ? -us_until(rung_at, now) : 0,
		     -us_until(board.heartbeat_at, now));
	scx_bpf_dump("declared load %llu of %llu per CPU, %u domains without a CPU", declared_load,
		     LOAD_ONE, nr_dead_doms);
	bpf_for(dom, 0, nr_doms)
		dump_lane("domain", dom, dom, now);
}

void BPF_STRUCT_OPS(temponet_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 now = scx_bpf_now();

	if (!idle)
		scx_bpf_dump("runs tier %u, key %lld us from now, preempt pending %d, next patrol in %lld us",
			     urgency_tier(cpuc->urgency),
			     us_until(cpuc->urgency & ((1ULL << URGENCY_KEY_BITS) - 1), now),
			     cpuc->preempt_pending, us_until(cpuc->patrol_at, now));
	dump_lane("CPU", cpu, cpu_lane(cpu), now);
}

void BPF_STRUCT_OPS(temponet_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 now = scx_bpf_now();

	if (!tctx)
		return;
	scx_bpf_dump("tier %u (at best %u), lane %d tier %d, waits %lld us, verdict %u",
		     tctx->run_tier, tctx->base, (s32)(tctx->queue - 1) / TN_NR_TIERS,
		     (s32)(tctx->queue - 1) % TN_NR_TIERS,
		     tctx->queued_at ? -us_until(tctx->queued_at, now) : 0, verdict(tctx, now));
	scx_bpf_dump("deadline in %lld us, released %lld us ago, ran %llu of %llu us, period %llu us",
		     us_until(tctx->deadline_at, now), -us_until(tctx->release_at, now),
		     tctx->exec_ns / TN_USEC, tctx->budget_ns / TN_USEC,
		     tctx->period_ns / TN_USEC);
}

#endif /* __TEMPONET_DUMP_BPF_H */
