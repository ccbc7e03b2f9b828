/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Throttling. A task that has used its next period's budget waits below all jobs until that
 * period begins (task_tier()). It is replenished then: moved back among the declared jobs. Left
 * where it is, it would wait for the bound to find it, whatever its deadline.
 */
#ifndef __TEMPONET_THROTTLE_BPF_H
#define __TEMPONET_THROTTLE_BPF_H

#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "state.bpf.h"
#include "tier.bpf.h"

/* How many tasks one dispatch replenishes at most. */
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

/* A throttled task of @queue whose period has begun: pid, tier in the upper half; 0: none. */
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

/* Only from dispatch(), where tasks may be moved. */
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
	/* There may be more of them. */
	lane_replenish_at[bounded(lane_id, NR_LANES)] = now;
	return 0;
}

#endif /* __TEMPONET_THROTTLE_BPF_H */
