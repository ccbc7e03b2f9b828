/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks of user space. A declared task that sleeps in the middle of its job, waiting for a mutex
 * that a less urgent thread of its process holds, lends that thread its deadline until it wakes up.
 * Otherwise the holder would wait for its own turn, and the declared task with it.
 *
 * The holder of a PI mutex stands in the mutex itself; the kernel defines where. That of a plain
 * mutex is known where the C library notes it: glibc does, two words after the lock. A wrong number
 * does no harm: only threads of the same process are helped.
 *
 * A loan is bounded: one per job of the lender, to one thread, for LEND_RUN of CPU time and LEND_MAX
 * at most. The thread ids are those of the first pid namespace; in another one nothing is lent.
 */
#ifndef __TEMPONET_LEND_BPF_H
#define __TEMPONET_LEND_BPF_H

#include "slack.bpf.h"
#include "state.bpf.h"

#define LEND_MAX (100 * TN_MSEC)
#define LEND_RUN (20 * TN_MSEC)

/* The system call and its operations, as on x86-64. */
#define NR_FUTEX 202
#define FUTEX_OP_MASK 0x7f
#define FUTEX_OP_WAIT 0
#define FUTEX_OP_LOCK_PI 6
#define FUTEX_OP_WAIT_BITSET 9
#define FUTEX_OP_LOCK_PI2 13
#define FUTEX_TID 0x3fffffff
/* A plain mutex that is locked and has waiters. */
#define MUTEX_CONTENDED 2
/* struct __pthread_mutex_s of glibc: lock, count, owner. */
#define MUTEX_OWNER_OFFSET 8

/* The thread that holds the lock for which the running task is about to sleep, or 0. */
static u32 lock_holder(struct task_struct *p)
{
#ifdef __TARGET_ARCH_x86
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	u64 call = 0, uaddr = 0, op = 0;
	u32 word = 0, owner = 0;

	bpf_probe_read_kernel(&call, sizeof(call), &regs->orig_ax);
	if (call != NR_FUTEX)
		return 0;
	bpf_probe_read_kernel(&uaddr, sizeof(uaddr), &regs->di);
	bpf_probe_read_kernel(&op, sizeof(op), &regs->si);
	op &= FUTEX_OP_MASK;
	if (bpf_probe_read_user(&word, sizeof(word), (void *)uaddr))
		return 0;
	if (op == FUTEX_OP_LOCK_PI || op == FUTEX_OP_LOCK_PI2)
		return word & FUTEX_TID;
	if ((op != FUTEX_OP_WAIT && op != FUTEX_OP_WAIT_BITSET) || word != MUTEX_CONTENDED)
		return 0;
	bpf_probe_read_user(&owner, sizeof(owner), (void *)uaddr + MUTEX_OWNER_OFFSET);
	return owner;
#else
	return 0;
#endif
}

static bool has_loan(const struct task_ctx *tctx, u64 now)
{
	return tctx->loan_until && time_before(now, tctx->loan_until);
}

/* @p, declared, goes to sleep. The next dispatch() of this CPU moves the holder, which waits in
 * some queue, to the declared tier. */
__weak int lend_deadline(struct task_struct *p __arg_trusted, u32 cpu)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	struct task_ctx *tctx, *to;
	struct task_struct *holder;
	u64 now = scx_bpf_now();
	u32 tid;

	tctx = task_ctx(p);
	if (!tctx || tctx->base != TN_DECLARED || !tctx->open || tctx->lent_job == tctx->job)
		return 0;
	tid = lock_holder(p);
	if (!tid)
		return 0;
	holder = bpf_task_from_pid(tid);
	if (!holder)
		return 0;
	to = task_ctx(holder);
	if (to && holder->tgid == p->tgid && to != tctx && to->run_tier != TN_DECLARED) {
		tctx->lent_job = tctx->job;
		tctx->lent_to = tid;
		to->loan_deadline = tctx->deadline_at;
		to->loan_left = LEND_RUN;
		to->loan_until = now + MIN(tctx->period_ns, LEND_MAX);
		this_stats()->lent++;
		if (to->queue) {
			cpuc->lend_queue = to->queue - 1;
			cpuc->lend_pid = tid;
		}
	}
	bpf_task_release(holder);
	return 0;
}

/* The lender wakes up: the holder has released the lock, or need not hurry any more. */
static void end_loan(struct task_ctx *tctx)
{
	struct task_struct *holder;
	struct task_ctx *to;

	if (!tctx->lent_to)
		return;
	holder = bpf_task_from_pid(tctx->lent_to);
	tctx->lent_to = 0;
	if (!holder)
		return;
	to = task_ctx(holder);
	if (to && to->loan_until) {
		to->loan_until = 0;
		/* It runs on what it borrowed, so any job may preempt it now. */
		if (to->on_cpu)
			cpu_ctx(to->cpu)->urgency = urgency(TN_BACKGROUND, 0);
	}
	bpf_task_release(holder);
}

static void charge_loan(struct task_ctx *tctx, u64 ran)
{
	if (!tctx->loan_until)
		return;
	tctx->loan_left -= MIN(ran, tctx->loan_left);
	if (!tctx->loan_left)
		tctx->loan_until = 0;
}

#endif /* __TEMPONET_LEND_BPF_H */
