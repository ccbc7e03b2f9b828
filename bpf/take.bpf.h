/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking one task out of the middle of a queue: for the bound (bound.bpf.h), because it may hold up
 * a stuck task (stuck.bpf.h), or because it is the agent (agent.bpf.h).
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
	FILTER_UNFINISHED, /* any task; its wait counts from before a turn that was cut short */
	FILTER_KTHREAD,
	FILTER_SIBLING, /* a thread of the stuck task's process */
	FILTER_AGENT,
};

/*
 * Takes the task that has waited longest in @queue, of those that pass @filter, may run on @cpu and
 * wait since before @oldest. A thread of RCU counts as having waited longest, but not twice in a
 * row on a CPU: it waits again within milliseconds, and would take the turns of all others. The
 * task may be gone between the two passes; then none is taken.
 */
__weak int take_oldest(u32 queue, s32 cpu, u64 oldest, u32 filter)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 pid = 0;
	bool moved = false, rcu = false, rcu_had_turn = cpu_ctx(cpu)->rcu_turn;

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
		if (rcu_first(tctx) && !rcu_had_turn)
			from = 0;
		if (time_before(from, oldest) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			oldest = from;
			pid = p->pid;
			rcu = tctx->rcu;
		}
	}
	cpu_ctx(cpu)->rcu_turn = rcu;
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

/* The same for all queues below the declared tier that @cpu serves. */
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

/* Takes the agent out of the queue where it waits. It may not be found: it may be counted and not
 * inserted yet, or may not use this CPU. So agent_lane is cleared only when the agent runs. By
 * another CPU's clock it may have been queued a moment from now. */
static bool take_waiting_agent(s32 cpu, u32 dom, u64 now)
{
	return take_lower(cpu, dom, now + TN_MSEC, FILTER_AGENT);
}

/* Takes the agent back after short jobs to which it yielded. */
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

/* Takes the agent that waits like any task, once it has credit again. */
static bool take_agent(s32 cpu, u32 dom, u64 now)
{
	return agent_due(cpu, dom, now) && take_waiting_agent(cpu, dom, now);
}

#endif /* __TEMPONET_TAKE_BPF_H */
