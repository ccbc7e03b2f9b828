/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking one task out of the middle of a queue.
 */
#ifndef __TEMPONET_TAKE_BPF_H
#define __TEMPONET_TAKE_BPF_H

#include "agent.bpf.h"
#include "queue.bpf.h"
#include "rcu.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"

enum whom {
	WHOM_ANY,
	WHOM_OWED, /* whose last turn was cut short waits since before it */
	WHOM_KTHREAD,
	WHOM_MATE, /* of the process of the task that is stuck */
	WHOM_AGENT,
};

/*
 * Of those in @queue that may run on @cpu and wait since before @oldest, the one that
 * waits longest is next; one that ends grace periods goes first.
 */
__weak int take_oldest(u32 queue, s32 cpu, u64 oldest, u32 whom)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 pid = 0;
	bool moved = false;

	bpf_for_each(scx_dsq, p, queue, SCX_DSQ_ITER_REV) {
		u64 from;

		if ((whom == WHOM_KTHREAD && !(p->flags & PF_KTHREAD)) ||
		    (whom == WHOM_MATE && p->tgid != stuck_tgid) ||
		    (whom == WHOM_AGENT && !is_agent(p)))
			continue;
		tctx = task_ctx(p);
		if (!tctx || (whom == WHOM_MATE && tctx->helped_at == stuck_since))
			continue;
		from = whom == WHOM_OWED ? tctx->waits_since : tctx->queued_at;
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
		if (tctx && whom == WHOM_MATE)
			tctx->helped_at = stuck_since;
		if (tctx && whom == WHOM_AGENT && moved)
			tctx->cut_in = !agent_spent;
		break;
	}
	return moved;
}

/* Anywhere below the declared jobs. */
__weak int take_lower(s32 cpu, u32 dom, u64 oldest, u32 whom)
{
	u32 tier;

	bpf_for(tier, TN_INFERRED, TN_NR_TIERS) {
		u32 shared = queue_id(dom, tier), own = queue_id(cpu_lane(cpu), tier);

		if ((queue_len(shared) && take_oldest(shared, cpu, oldest, whom)) ||
		    (queue_len(own) && take_oldest(own, cpu, oldest, whom)))
			return true;
	}
	return false;
}

/* It may not be in its queue yet, or this CPU none of its own: that it waits is over only
 * when it runs. Another CPU's clock may have put it there a moment from now. */
static bool take_waiting_agent(s32 cpu, u32 dom, u64 now)
{
	return take_lower(cpu, dom, now + TN_MSEC, WHOM_AGENT);
}

static bool take_yielded(s32 cpu, u32 dom, bool runs_brief, u64 now)
{
	if (!yielded_due(cpu, dom, runs_brief, now))
		return false;
	if (!agent_may_cut_in(now)) {
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
