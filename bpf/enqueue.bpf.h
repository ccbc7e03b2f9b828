/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task goes when it becomes runnable: onto an idle CPU, past the queues (the agent, per-CPU
 * kernel threads), or into a queue.
 */
#ifndef __TEMPONET_ENQUEUE_BPF_H
#define __TEMPONET_ENQUEUE_BPF_H

#include "agent.bpf.h"
#include "throttle.bpf.h"
#include "fair.bpf.h"
#include "job.bpf.h"
#include "params.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "quota.bpf.h"
#include "state.bpf.h"
#include "records.bpf.h"
#include "tier.bpf.h"

/*
 * Is the task one of a crowd? A task without a steady rhythm counts as a short job until it shows
 * otherwise: by its last bursts, or by default if it is new. A crowd of such tasks must not stand
 * before tasks that have shown that they are short. It is a crowd if as many tasks of this length
 * as inferred jobs wait here would need more than TN_CROWD per CPU: eight new tasks per CPU, or
 * hundreds that pass messages.
 */
static bool crowded(u32 dom, const struct task_ctx *tctx)
{
	return !steady(tctx) && !tctx->rcu &&
	       lane_len(lane(dom), TN_INFERRED) * tctx->runtime_ns >
		       (u64)TN_CROWD * nr_servers(dom);
}

/* A flag of ours beside the kernel's: the waker said that it is about to sleep. */
#define ENQ_SYNC (1ULL << 63)

/*
 * Queues a task that found no idle CPU, and preempts a CPU that runs a less urgent one. Returns the
 * CPU that the task is meant for.
 */
__weak s32 queue_task(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		      s32 cpu, u64 enq_flags, u64 now)
{
	u32 tier = tctx->run_tier, queue;
	bool sync = enq_flags & ENQ_SYNC;
	u64 urg, seen = 0;
	s32 victim;

	enq_flags &= ~ENQ_SYNC;
	if (tier == TN_INFERRED && tctx->base == TN_INFERRED && crowded(dom_of(cpu), tctx)) {
		demote(tctx);
		tier = tctx->run_tier = TN_BACKGROUND;
	}
	note_tier(p, tctx, cpu, tier);
	/* Beside hogs a job is late because of its share, not because others came first. It has
	 * no claim to be served before those that are within theirs. */
	if (tier == TN_INFERRED && tctx->base == TN_INFERRED && !on_grid(tctx) &&
	    time_before(tctx->deadline_at, now) && others_hog(tctx, cpu))
		tctx->deadline_at = now + tctx->rel_deadline_ns;
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
		/* The task was about to run when a real-time task took the CPU. It keeps its
		 * waiting time, as after a turn that was cut short. */
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
		/* The CPU may be on its way to idle, past its look at the queues. A task that can
		 * move would be found by another CPU. A pinned one is found by this CPU only. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return cpu;
}

/* A flag of the kernel's, which BTF does not carry: userspace may not move the task. */
#define PF_NO_SETAFFINITY 0x04000000

/*
 * Per-CPU kernel threads are never queued: the machine itself depends on them. Where there is only
 * one CPU every kernel thread is bound to it. Then only those count that userspace may not move;
 * khugepaged, for example, can wait.
 */
static bool is_cpu_kthread(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1 &&
	       (nr_cpus > 1 || (p->flags & PF_NO_SETAFFINITY));
}

/*
 * A wake-up. The task goes straight onto an idle CPU if there is one; the kernel's own search for
 * it knows SMT, LLC and NUMA. Otherwise the task is queued from here, which spares a call of
 * enqueue().
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
	/* enqueue() parks it. */
	if (must_park(p, tctx, now))
		return prev_cpu;

	/* A declared job does not wait for the waker's CPU: the waker said that it is about to
	 * sleep, but may not do so in time. */
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
	/* The task's affinity changed while it slept. The kernel calls enqueue() on a CPU that the
	 * task may use. */
	if (!may_use(p, cpu))
		return cpu;
	/* enqueue() puts the agent onto the CPU that is chosen here. */
	if (is_agent(p) && agent_may_bypass(now))
		return least_urgent_cpu(p, cpu);
	return queue_task(p, tctx, cpu, wake_flags & SCX_WAKE_SYNC ? ENQ_SYNC : 0, now);
}

/* Enqueues a task that select_cpu() did not: one bound to a CPU, or one that was running and must
 * make room. */
void BPF_STRUCT_OPS(temponet_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p), idle;
	u64 now, until;

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
	/* The kernel does not call select_cpu() for a task with one CPU. */
	if (is_agent(p) && (enq_flags & SCX_ENQ_WAKEUP))
		note_agent_woken(now);

	/* The task may have been taken out of a queue without having run (affinity, class). */
	leave_queue(tctx);

	if (is_cpu_kthread(p)) {
		/* Put back by cpu_release(), a kthread must not preempt: the task that
		 * loses the CPU anyway would be queued without a slice. */
		u64 how = enq_flags & SCX_ENQ_REENQ ? SCX_ENQ_HEAD : SCX_ENQ_PREEMPT;

		this_stats()->dispatches[TN_SRC_KTHREAD]++;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, TN_SLICE_BACKGROUND, enq_flags | how);
		return;
	}

	leave_park(tctx, now);
	until = must_park(p, tctx, now);
	if (until) {
		park(p, tctx, until, enq_flags, now);
		return;
	}

	tctx->bypass_queue = false;
	if (is_agent(p) && agent_may_bypass(now) &&
	    agent_bypass_queue(p, tctx, cpu, enq_flags, now))
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
	queue_task(p, tctx, cpu, enq_flags, now);
}

#endif /* __TEMPONET_ENQUEUE_BPF_H */
