/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task goes that wants to run: to an idle CPU, past the queues, or into one of them.
 */
#ifndef __TEMPONET_ENQUEUE_BPF_H
#define __TEMPONET_ENQUEUE_BPF_H

#include "agent.bpf.h"
#include "throttle.bpf.h"
#include "cgroup.bpf.h"
#include "fair.bpf.h"
#include "job.bpf.h"
#include "params.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"
#include "records.bpf.h"
#include "tier.bpf.h"

/*
 * A task without a rhythm is taken for as short as it was before, and a newcomer for
 * short, until they show otherwise. A crowd of them is not believed: it would stand
 * before all who have shown that they are short. It is one if so many of its kind as
 * wait here would keep the last of them waiting for TN_CROWD: eight newcomers per CPU,
 * or hundreds that pass messages.
 */
static bool crowded(u32 dom, const struct task_ctx *tctx)
{
	return !steady(tctx) && !tctx->rcu &&
	       lane_len(lane(dom), TN_INFERRED) * tctx->runtime_ns > (u64)TN_CROWD * nr_servers(dom);
}

/*
 * Queue a task that found no idle CPU, and preempt a CPU that runs something less urgent.
 * Returns the CPU that the task is meant for.
 */
static __always_inline s32 queue_task(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags,
		      bool sync, u64 now)
{
	u32 tier = tctx->run_tier, queue;
	u64 urg, seen = 0;
	s32 victim;

	if (tier == TN_INFERRED && tctx->base == TN_INFERRED && crowded(dom_of(cpu), tctx)) {
		demote(tctx);
		tier = tctx->run_tier = TN_BACKGROUND;
	}
	if (tier == TN_BACKGROUND) {
		weigh_hog(p, tctx);
		place_hog(tctx);
	}
	urg = urgency(tier, tier_key(tctx, tier, now));
	victim = find_victim(p, cpu, tier, urg, sync, now);
	if (victim >= 0) {
		cpu = victim;
		seen = cpu_ctx(victim)->urgency;
	}

	queue = queue_id(task_lane(p, cpu), tier);
	if (misplace_permille && !pinned(p) && bpf_get_prandom_u32() % 1000 < misplace_permille)
		queue = queue_id(bpf_get_prandom_u32() % nr_doms, tier);
	if (!tctx->queued_at)
		begin_wait(tctx, now);
	else if (enq_flags & SCX_ENQ_REENQ)
		/* It was next, and a real-time task came first. */
		grant_turn(tctx);
	join_queue(tctx, queue, now);
	note_agent_queued(p, queue / TN_NR_TIERS);
	if (tctx->base == TN_DECLARED && (tier == TN_INFERRED || tier == TN_BACKGROUND))
		note_throttled(queue / TN_NR_TIERS, tctx);
	if (tier == TN_DECLARED && !(enq_flags & SCX_ENQ_REENQ))
		note_release(p, tctx, queue, cpu, victim, now);
	else if (concerns_agent(tctx))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE, now);
	scx_bpf_dsq_insert_vtime(p, queue, tier_slice(tier), tier_key(tctx, tier, now), enq_flags);

	if (victim >= 0)
		preempt(victim, seen, urg);
	else if (pinned(p) && cpu != bpf_get_smp_processor_id())
		/* It may be on its way to idle, past its look at the queue. Others
		 * than it would find a task that can move; here only it can. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return cpu;
}

/* The kernel's: userspace may not move it. */
#define PF_NO_SETAFFINITY 0x04000000

/*
 * What the machine itself needs done on one CPU is never queued. Where there is only
 * one CPU every kernel thread is bound to it, and khugepaged can wait.
 */
static bool is_cpu_kthread(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1 &&
	       (nr_cpus > 1 || (p->flags & PF_NO_SETAFFINITY));
}

/*
 * A wake-up. An idle CPU is found without a detour through a queue; the
 * kernel's own search knows SMT, LLC and NUMA. Where there is none the task is
 * queued from here, which spares a call of enqueue().
 */
s32 BPF_STRUCT_OPS(temponet_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	bool is_idle = false;
	u64 now;
	s32 cpu;

	if (!tctx)
		return prev_cpu;
	now = scx_bpf_now();
	if (is_agent(p))
		note_agent_woken(now);
	if (tctx->sleep != AWAKE)
		wake_job(p, tctx, now);
	tctx->run_tier = task_tier(tctx, prev_cpu, now);

	/* A waker that promises to sleep may not keep its promise in time. */
	if (tctx->base == TN_DECLARED)
		wake_flags &= ~SCX_WAKE_SYNC;

	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (is_idle) {
		tctx->placed = true;
		this_stats()->dispatches[TN_SRC_IDLE]++;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tier_slice(tctx->run_tier), 0);
		return cpu;
	}
	if (is_cpu_kthread(p))
		return cpu;
	/* It was moved while it slept: enqueue() is called on a CPU that it may use. */
	if (!may_use(p, cpu))
		return cpu;
	/* enqueue() puts it there. */
	if (is_agent(p) && agent_may_bypass(now))
		return least_urgent_cpu(p, cpu);
	return queue_task(p, tctx, cpu, 0, wake_flags & SCX_WAKE_SYNC, now);
}

/*
 * Tasks that select_cpu() did not place: those bound to one CPU, and those that
 * were running and must make room.
 */
void BPF_STRUCT_OPS(temponet_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p), idle;
	u64 now;

	if (!tctx) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, TN_SLICE_BACKGROUND, enq_flags);
		return;
	}
	now = scx_bpf_now();
	if (tctx->sleep == NEWBORN || (tctx->sleep && (enq_flags & SCX_ENQ_WAKEUP)))
		wake_job(p, tctx, now);
	tctx->sleep = AWAKE;
	note_unstuck(tctx);
	tctx->run_tier = task_tier(tctx, cpu, now);
	/* select_cpu() is not asked where there is nothing to select. */
	if (is_agent(p) && (enq_flags & SCX_ENQ_WAKEUP))
		note_agent_woken(now);

	/* It was taken out of a queue without having run (affinity, class). */
	leave_queue(tctx);

	if (is_cpu_kthread(p)) {
		/* Put back by cpu_release(), a kthread must not preempt: the task that
		 * loses the CPU anyway would be queued without a slice. */
		u64 how = enq_flags & SCX_ENQ_REENQ ? SCX_ENQ_HEAD : SCX_ENQ_PREEMPT;

		this_stats()->dispatches[TN_SRC_KTHREAD]++;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, TN_SLICE_BACKGROUND, enq_flags | how);
		return;
	}

	tctx->bypass_queue = false;
	if (is_agent(p) && agent_may_bypass(now) && agent_bypass_queue(p, tctx, cpu, enq_flags, now))
		return;

	if (pinned(p))
		idle = scx_bpf_test_and_clear_cpu_idle(cpu) ? cpu : -1;
	else
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0 && is_online(idle)) {
		tctx->placed = true;
		this_stats()->dispatches[TN_SRC_IDLE]++;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | idle, tier_slice(tctx->run_tier),
				   enq_flags);
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
		return;
	}
	queue_task(p, tctx, cpu, enq_flags, false, now);
}

#endif /* __TEMPONET_ENQUEUE_BPF_H */
