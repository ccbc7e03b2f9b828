/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stuck: in the middle of its job a declared task waits in the kernel for what somebody
 * else holds, who may wait for the CPU below all jobs: khugepaged with the memory map of
 * the task's process, a thread of that process that was given up. The kernel does not
 * say who it is. So all who may be it have turns by the bound (bound.bpf.h), at once.
 */
#ifndef __TEMPONET_STUCK_BPF_H
#define __TEMPONET_STUCK_BPF_H

#define TASK_UNINTERRUPTIBLE 0x0002
/* What waits for work, not for anybody. */
#define TASK_NOLOAD 0x0400

static u64 nr_stuck;
/* The last of them. */
static u64 stuck_since;
static u32 stuck_tgid;

static void note_stuck(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (tctx->base != TN_DECLARED || tctx->stuck ||
	    (p->__state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) != TASK_UNINTERRUPTIBLE)
		return;
	tctx->stuck = true;
	stuck_tgid = p->tgid;
	stuck_since = now;
	__sync_fetch_and_add(&nr_stuck, 1);
}

static void note_unstuck(struct task_ctx *tctx)
{
	if (!tctx->stuck)
		return;
	tctx->stuck = false;
	__sync_fetch_and_sub(&nr_stuck, 1);
}

/* Not for long: a disk that does not answer is no reason to disturb anybody. */
static bool anybody_stuck(u64 now)
{
	return nr_stuck && since(now, stuck_since) < TN_STUCK_FOR;
}

#endif /* __TEMPONET_STUCK_BPF_H */
