/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moving a waiting task from one queue to another, with its count. The task may begin to run on
 * another CPU meanwhile. tctx->queue decides between the two: whichever swaps it does the counting.
 */
#ifndef __TEMPONET_REQUEUE_BPF_H
#define __TEMPONET_REQUEUE_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"
#include "tier.bpf.h"

/* Counts @tctx in queue @to instead of @from. Returns false if it has left @from. */
static bool recount(struct task_ctx *tctx, u32 from, u32 to, u64 now)
{
	if (__sync_val_compare_and_swap(&tctx->queue, from + 1, to + 1) != from + 1)
		return false;
	if (!queue_len(to))
		*queue_served_at(to) = now;
	__sync_fetch_and_add(queue_count(to), CAME_ONE + 1);
	__sync_fetch_and_sub(queue_count(from), 1);
	return true;
}

/* Moves the task @pid of queue @from to another @tier of its lane. A declared job that is moved is
 * given up. */
__weak int move_queued(u32 from, u32 tier, u32 pid, u64 now)
{
	u32 to = queue_id(from / TN_NR_TIERS, tier);
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, from, 0) {
		if (p->pid != pid)
			continue;
		tctx = task_ctx(p);
		if (!tctx ||
		    __sync_val_compare_and_swap(&tctx->queue, from + 1, to + 1) != from + 1)
			break;
		if (!queue_len(to))
			*queue_served_at(to) = now;
		__sync_fetch_and_add(queue_count(to), CAME_ONE + 1);
		__sync_fetch_and_sub(queue_count(from), 1);
		if (from % TN_NR_TIERS == TN_DECLARED)
			tctx->dropped = true;
		tctx->run_tier = tier;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, tier_slice(tier));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tier_key(tctx, tier, now));
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0))
			break;
		/* The move failed: the task ran and was queued again meanwhile. Count it where it
		 * was. */
		if (__sync_val_compare_and_swap(&tctx->queue, to + 1, from + 1) != to + 1)
			break;
		__sync_fetch_and_add(queue_count(from), CAME_ONE + 1);
		__sync_fetch_and_sub(queue_count(to), 1);
		tctx->run_tier = from % TN_NR_TIERS;
		break;
	}
	return 0;
}

#endif /* __TEMPONET_REQUEUE_BPF_H */
