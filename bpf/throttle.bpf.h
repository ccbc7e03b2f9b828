/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Throttling. A declared task that has used up its budget waits among the inferred jobs until its
 * next period begins, or among the hogs if it has used up that period's budget as well
 * (task_tier()). When its period begins it is replenished: moved back among the declared jobs. Left
 * where it is, it would wait for the bound to find it, whatever its deadline. With eight tasks at
 * 1.25 of two vCPUs, 87.1 % of the jobs were on time that way, and 92.3 % are with replenishment
 * (one run each, docs/measurements/scheduler.md).
 */
#ifndef __TEMPONET_THROTTLE_BPF_H
#define __TEMPONET_THROTTLE_BPF_H

#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "state.bpf.h"
#include "tier.bpf.h"

/* How many steps one dispatch takes. Each replenishes a task, or turns to the next queue. */
#define REPLENISH_MAX 4

/* When the first throttled task of a lane is to be replenished; 0: none is throttled. */
static u64 lane_replenish_at[NR_LANES];

static void note_throttled(u32 lane_id, const struct task_ctx *tctx)
{
	u64 *at = &lane_replenish_at[bounded(lane_id, NR_LANES)];

	if (!*at || time_before(tctx->release_at, *at))
		*at = tctx->release_at;
}

static bool replenish_due(u32 lane_id, u64 now)
{
	u64 at = lane_replenish_at[bounded(lane_id, NR_LANES)];

	return at && !time_before(now, at);
}

/* Finds a throttled task of @queue whose period has begun. Returns its pid, with its tier in the
 * upper half, or 0. */
__weak u64 find_replenished(u32 queue, s32 cpu, u64 now)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 found = 0;
	u32 tier;

	bpf_for_each(scx_dsq, p, queue, 0) {
		tctx = task_ctx(p);
		if (!tctx || tctx->base != TN_DECLARED)
			continue;
		if (time_after(tctx->release_at, now)) {
			note_throttled(queue / TN_NR_TIERS, tctx);
			continue;
		}
		tier = task_tier(tctx, cpu, now);
		if (tier != TN_DECLARED && tier != TN_LATE)
			continue;
		found = (u64)tier << 32 | (u32)p->pid;
		break;
	}
	return found;
}

/* Moves throttled tasks whose period has begun back to their tier. Called from dispatch() only,
 * where tasks may be moved. */
__weak int replenish(u32 lane_id, s32 cpu, u64 now)
{
	u32 from = queue_id(lane_id, TN_INFERRED);
	int i;

	lane_replenish_at[bounded(lane_id, NR_LANES)] = 0;
	bpf_for(i, 0, REPLENISH_MAX) {
		u64 due = find_replenished(from, cpu, now);

		if (due) {
			move_queued(from, due >> 32, due, now);
		} else if (from == queue_id(lane_id, TN_INFERRED)) {
			from = queue_id(lane_id, TN_BACKGROUND);
		} else {
			return 0;
		}
	}
	/* More tasks may be due, so the next dispatch goes on. */
	lane_replenish_at[bounded(lane_id, NR_LANES)] = now;
	return 0;
}

#endif /* __TEMPONET_THROTTLE_BPF_H */
