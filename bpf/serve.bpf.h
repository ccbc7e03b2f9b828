/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serving a tier: the next task in the order of its queues. A tier has two queues that a CPU
 * serves, its domain's and its own. Their heads compete with each other and with the running task.
 */
#ifndef __TEMPONET_SERVE_BPF_H
#define __TEMPONET_SERVE_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"

enum served {
	SERVED_NONE,
	SERVED_MOVED,
	SERVED_KEEP, /* the running task goes on */
	SERVED_FOLLOWED, /* a task was moved as the agent said, and counted as such */
};

/* Takes the first task of another domain's queue that this CPU may run. */
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
 * Serves one tier on @cpu. @prev_urg is the running task's urgency if it wants to go on. The
 * domain's queue and the CPU's own are peeked at only where two candidates compete. A head may be
 * gone by the time it is moved; then the other queue is tried.
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
