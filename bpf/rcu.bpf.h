/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RCU: the whole kernel waits for its grace periods. Threads of its own end them, and run
 * several times in each; and each waits for all tasks that were pushed aside within an RCU
 * section. In line with a crowd both would wait for seconds every time, and after 21 s Linux
 * calls that a stall and ejects us.
 */
#ifndef __TEMPONET_RCU_BPF_H
#define __TEMPONET_RCU_BPF_H

#include "state.bpf.h"

/* A task that was pushed aside while a grace period had to wait for it. It is the next of its
 * tier, once: who reads all the time shall not have all turns. */
enum {
	NO_READER,
	READER_WAITS,
	READER_RUNS,
};

/* rcu_preempt, rcu_tasks_*, rcu_exp_*, rcuog/N, rcuop/N: the kernel's threads keep their names,
 * and no program can have the flag. */
static bool is_rcu(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->comm[0] == 'r' && p->comm[1] == 'c' &&
	       p->comm[2] == 'u';
}

/*
 * Such a thread is no hog whatever it does, and stands before all but declared jobs, unless it
 * does not let go (or a host took the CPU from under it, which looks the same).
 */
static bool rcu_first(const struct task_ctx *tctx)
{
	return tctx->rcu && tctx->awake_ns < TN_SLICE_JOB;
}

static u64 rcu_key(const struct task_ctx *tctx, u64 now)
{
	return rcu_first(tctx) ? 0 : now + TN_SLICE_JOB;
}

/* It is being pushed aside within such a section. The field is there only where that can
 * happen. */
static bool reads_rcu(const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_unlock_special) &&
	       p->rcu_read_unlock_special.b.blocked;
}

static void note_reader(const struct task_struct *p, struct task_ctx *tctx, bool runnable)
{
	bool waits = runnable && tctx->reader != READER_RUNS && reads_rcu(p);

	tctx->reader = waits ? READER_WAITS : NO_READER;
}

#endif /* __TEMPONET_RCU_BPF_H */
