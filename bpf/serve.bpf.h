/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serving a tier: the next task in the order of its queues.
 */
#ifndef __TEMPONET_SERVE_BPF_H
#define __TEMPONET_SERVE_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"

enum served {
	SERVED_NONE,
	SERVED_MOVED,
	SERVED_KEEP, /* the running task is the one to run */
	SERVED_FOLLOWED, /* one was moved on the agent's word, and counted */
};

/* Tasks of other domains that nobody there has time for. */
static bool steal(u32 dom, u32 tier)
{
	int i;

	bpf_for(i, 1, nr_doms) {
		u32 queue = queue_id((dom + i) % nr_doms, tier);

		if (queue_len(queue) && scx_bpf_dsq_move_to_local(queue, 0)) {
			this_stats()->steals++;
			return true;
		}
	}
	return false;
}

/*
 * Serve one tier on @cpu, whose running task has urgency @prev_urg if it wants
 * to go on running.
 */
__weak int serve_tier(s32 cpu, u32 dom, u32 tier, u64 prev_urg)
{
	u64 shared_key = NO_KEY, own_key = NO_KEY;
	u64 nr_shared = queue_len(queue_id(dom, tier));
	u64 nr_own = queue_len(queue_id(cpu_lane(cpu), tier));
	u32 shared = queue_id(dom, tier), own = queue_id(cpu_lane(cpu), tier);
	bool compete;

	if (urgency_tier(prev_urg) < tier)
		return SERVED_KEEP;
	compete = urgency_tier(prev_urg) == tier;

	if (nr_shared | nr_own) {
		if (nr_shared && (nr_own || compete))
			shared_key = head_key(shared, cpu);
		if (nr_own && (nr_shared || compete))
			own_key = head_key(own, cpu);
		if (compete && prev_urg <= urgency(tier, MIN(shared_key, own_key)))
			return SERVED_KEEP;

		if (nr_own && own_key <= shared_key && scx_bpf_dsq_move_to_local(own, 0))
			return SERVED_MOVED;
		if (nr_shared && scx_bpf_dsq_move_to_local(shared, 0))
			return SERVED_MOVED;
		if (nr_own && own_key > shared_key && scx_bpf_dsq_move_to_local(own, 0))
			return SERVED_MOVED;
	}
	if (compete)
		return SERVED_KEEP;
	return nr_doms > 1 && steal(dom, tier) ? SERVED_MOVED : SERVED_NONE;
}

#endif /* __TEMPONET_SERVE_BPF_H */
