/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Precedence for RCU. The whole kernel waits for RCU's grace periods. Kernel threads end them, and
 * have to run several times in each. A grace period also waits for every task that was preempted
 * within an RCU section. In line with a crowd, threads and readers would wait for seconds every
 * time. After 21 s Linux reports a stall and ejects the scheduler: without these rules that
 * happened among 2,000 hogs (docs/measurements/stress.md).
 */
#ifndef __TEMPONET_RCU_BPF_H
#define __TEMPONET_RCU_BPF_H

#include "state.bpf.h"

/* A task that was preempted within an RCU section. It is the next of its tier, but only once in a
 * row: a task that is in such sections all the time must not take all turns. */
enum {
	NO_READER,
	READER_WAITS,
	READER_RUNS,
};

/* RCU's threads: rcu_preempt, rcu_tasks_*, rcu_exp_*, rcuog/N, rcuop/N. No program can pass for
 * one: PF_KTHREAD is the kernel's, and its threads keep their names. */
static bool is_rcu(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->comm[0] == 'r' && p->comm[1] == 'c' &&
	       p->comm[2] == 'u';
}

/*
 * A thread of RCU is never a hog, and comes before all but declared jobs. It loses that place when
 * it runs for TN_SLICE_JOB without sleeping (or when a host took the CPU, which looks the same).
 */
static bool rcu_first(const struct task_ctx *tctx)
{
	return tctx->rcu && tctx->awake_ns < TN_SLICE_JOB;
}

/* The key of such a thread among inferred jobs. */
static u64 rcu_key(const struct task_ctx *tctx, u64 now)
{
	return rcu_first(tctx) ? 0 : now + TN_SLICE_JOB;
}

/* Is @p being preempted within an RCU section? Only kernels on which that can happen have the
 * field. */
static bool reads_rcu(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_unlock_special) &&
	       p->rcu_read_unlock_special.b.blocked;
}

/* @p stops running. A reader that has just had its turn does not wait as one again. */
static void note_reader(const struct task_struct *p, struct task_ctx *tctx, bool runnable)
{
	bool waits = runnable && tctx->reader != READER_RUNS && reads_rcu(p);

	tctx->reader = waits ? READER_WAITS : NO_READER;
}

#endif /* __TEMPONET_RCU_BPF_H */
