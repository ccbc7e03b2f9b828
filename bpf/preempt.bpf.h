/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption: which CPU a more urgent job takes, namely the one that runs the least urgent task. A
 * job that waited for a slice to end would be late by up to a slice.
 */
#ifndef __TEMPONET_PREEMPT_BPF_H
#define __TEMPONET_PREEMPT_BPF_H

#include "agent.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"
/* After those: it needs the kernel's types. */
#include <bpf_experimental.h>

/* How many CPUs an inferred job looks at; a declared one looks at all. */
#define INFERRED_SCAN 8

/*
 * May an inferred job preempt the task of urgency @urg that @cpu runs? Each message of a stream
 * wakes a reader. If every one took the sender's CPU at once, the sender would be switched out per
 * message. So a hog has TN_HOG_STINT to itself, and a waker that says it is about to sleep (@sync)
 * is believed. A job that may not preempt gets the CPU at the next tick. An interrupt, a timer for
 * example, is no message of the running task.
 */
static bool may_preempt(s32 cpu, u64 urg, bool sync, u64 now)
{
	if (sync && cpu == bpf_get_smp_processor_id())
		return false;
	if (urgency_tier(urg) == TN_INFERRED)
		return true;
	return bpf_in_hardirq() || since(now, cpu_ctx(cpu)->hog_since) >= TN_HOG_STINT;
}

/* The CPU with the least urgent task, of those that @p may use, if that is less urgent than @worst.
 * CPUs are scanned in cpu_order[]. */
__weak s32 scan_for_victim(const struct task_struct *p __arg_trusted, u32 start, u32 len,
			   u64 *worst __arg_nonnull)
{
	s32 victim = -1;
	int i;

	bpf_for(i, 0, len) {
		u32 at = start + i;
		s32 cpu;
		u64 urg;

		if (at >= TN_MAX_CPUS)
			break;
		cpu = cpu_order[at];
		urg = cpu_ctx(cpu)->urgency;
		if (urg > *worst && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			*worst = urg;
			victim = cpu;
		}
	}
	return victim;
}

/* The CPU that a job of @tier and @urg should preempt, or -1. */
static __always_inline s32 find_victim(struct task_struct *p, s32 cpu, u32 tier, u64 urg, bool sync,
				       u64 now)
{
	u32 dom = dom_of(cpu);
	u64 worst = urg;
	s32 victim;

	if (tier > TN_INFERRED)
		return -1;
	if (tier == TN_INFERRED)
		worst += TN_INFERRED_PREEMPT_MARGIN;

	/* The CPU where the task ran last is best: its cache is there, its timer fires there. */
	if (pinned(p) || urgency_tier(cpu_ctx(cpu)->urgency) > TN_INFERRED)
		victim = cpu_ctx(cpu)->urgency > worst &&
					 bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ?
				 cpu :
				 -1;
	else if (tier == TN_INFERRED)
		victim = scan_for_victim(p, dom_start[dom], MIN(dom_len[dom], INFERRED_SCAN),
					 &worst);
	else
		victim = scan_for_victim(p, dom_start[dom], dom_len[dom], &worst);

	if (tier == TN_INFERRED)
		return victim >= 0 && may_preempt(victim, cpu_ctx(victim)->urgency, sync, now) ?
			       victim :
			       -1;
	if (victim < 0 && nr_doms > 1 && !pinned(p))
		victim = scan_for_victim(p, 0, nr_cpus, &worst);
	return victim >= 0 ? victim : agent_cpu_for_short_job(p, urg, now);
}

/* The CPU where @p disturbs least. */
static s32 least_urgent_cpu(const struct task_struct *p, s32 cpu)
{
	u64 worst = URGENCY_NEVER;
	u32 dom = dom_of(cpu);
	s32 victim;

	if (pinned(p))
		return cpu;
	victim = scan_for_victim(p, dom_start[dom], dom_len[dom], &worst);
	return victim >= 0 ? victim : cpu;
}

/*
 * Preempts @cpu for a job of urgency @urg. The new urgency is published at once, so that the next
 * job chooses another victim. If the CPU has switched tasks since @seen was read, its own urgency
 * stands. It decides anew when the kick arrives.
 */
static void preempt(s32 cpu, u64 seen, u64 urg)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	if (__sync_val_compare_and_swap(&cpuc->urgency, seen, urg) == seen)
		cpuc->preempt_pending = true;
	this_stats()->preemptions++;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

#endif /* __TEMPONET_PREEMPT_BPF_H */
