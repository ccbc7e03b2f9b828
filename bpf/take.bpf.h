/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking one task out of the middle of a queue, for the bound (bound.bpf.h), for the holder of what
 * a declared task is stuck on (stuck.bpf.h), or because it is the agent (agent.bpf.h).
 */
#ifndef __TEMPONET_TAKE_BPF_H
#define __TEMPONET_TAKE_BPF_H

#include "agent.bpf.h"
#include "queue.bpf.h"
#include "rcu.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"

enum filter {
	FILTER_ANY,
	FILTER_UNFINISHED, /* whose last turn was cut short waits since before it */
	FILTER_KTHREAD,
	FILTER_SIBLING, /* of the process of the task that is stuck */
	FILTER_AGENT,
};

/*
 * Of those in @queue that may run on @cpu and wait since before @oldest, the one that
 * waits longest is next; one that ends grace periods goes first.
 */
__weak int take_oldest(u32 queue, s32 cpu, u64 oldest, u32 filter)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 pid = 0;
	bool moved = false;

	bpf_for_each(scx_dsq, p, queue, SCX_DSQ_ITER_REV) {
		u64 from;

		if ((filter == FILTER_KTHREAD && !(p->flags & PF_KTHREAD)) ||
		    (filter == FILTER_SIBLING && p->tgid != stuck_tgid) ||
		    (filter == FILTER_AGENT && !is_agent(p)))
			continue;
		tctx = task_ctx(p);
		if (!tctx || (filter == FILTER_SIBLING && tctx->holder_turn_at == stuck_since))
			continue;
		from = filter == FILTER_UNFINISHED ? tctx->waits_since : tctx->queued_at;
		if (rcu_first(tctx))
			from = 0;
		if (time_before(from, oldest) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			oldest = from;
			pid = p->pid;
		}
	}
	if (!pid)
		return false;
	bpf_for_each(scx_dsq, p, queue, SCX_DSQ_ITER_REV) {
		if (p->pid != pid)
			continue;
		moved = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		tctx = task_ctx(p);
		if (tctx && filter == FILTER_SIBLING)
			tctx->holder_turn_at = stuck_since;
		if (tctx && filter == FILTER_AGENT && moved)
			tctx->bypass_queue = !agent_spent;
		break;
	}
	return moved;
}

/* Anywhere below the declared jobs. */
__weak int take_lower(s32 cpu, u32 dom, u64 oldest, u32 filter)
{
	u32 tier;

	bpf_for(tier, TN_INFERRED, TN_NR_TIERS) {
		u32 shared = queue_id(dom, tier), own = queue_id(cpu_lane(cpu), tier);

		if ((queue_len(shared) && take_oldest(shared, cpu, oldest, filter)) ||
		    (queue_len(own) && take_oldest(own, cpu, oldest, filter)))
			return true;
	}
	return false;
}

/* It may not be in its queue yet, or this CPU none of its own: that it waits is over only
 * when it runs. Another CPU's clock may have put it there a moment from now. */
static bool take_waiting_agent(s32 cpu, u32 dom, u64 now)
{
	return take_lower(cpu, dom, now + TN_MSEC, FILTER_AGENT);
}

static bool take_yielded(s32 cpu, u32 dom, bool runs_short_job, u64 now)
{
	if (!yielded_due(cpu, dom, runs_short_job, now))
		return false;
	if (!agent_may_bypass(now)) {
		agent_yielded = false;
		return false;
	}
	return take_waiting_agent(cpu, dom, now);
}

static bool take_agent(s32 cpu, u32 dom, u64 now)
{
	return agent_due(cpu, dom, now) && take_waiting_agent(cpu, dom, now);
}

#endif /* __TEMPONET_TAKE_BPF_H */
