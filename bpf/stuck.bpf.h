/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stuck: in the middle of its job a declared task waits in the kernel for what somebody
 * else holds, who may wait for the CPU below all jobs: khugepaged with the memory map of
 * the task's process, a thread of that process that was given up. The kernel does not
 * say who it is. So all who may be it have turns by the bound (bound.bpf.h), at once.
 *
 * One task at a time, once per job, and not for long: a disk that does not answer is no
 * reason to disturb anybody, and nobody shall have turns by getting stuck on purpose.
 */
#ifndef __TEMPONET_STUCK_BPF_H
#define __TEMPONET_STUCK_BPF_H

#include "slack.bpf.h"
#include "state.bpf.h"

#define TASK_UNINTERRUPTIBLE 0x0002
/* What waits for work, not for anybody. */
#define TASK_NOLOAD 0x0400

/* Who it is; written by whoever gets stuck while nobody is. */
static u32 stuck_pid;
static u32 stuck_tgid;
static u64 stuck_since; /* 0: nobody */

static bool anybody_stuck(u64 now)
{
	u64 from = stuck_since;

	return from && since(now, from) < TN_STUCK_FOR;
}

static void note_stuck(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (tctx->base != TN_DECLARED || !tctx->open || !remaining(tctx) ||
	    (p->__state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) != TASK_UNINTERRUPTIBLE)
		return;
	tctx->stuck = true;
	if (tctx->stuck_job == tctx->job || anybody_stuck(now))
		return;
	tctx->stuck_job = tctx->job;
	stuck_pid = p->pid;
	stuck_tgid = p->tgid;
	stuck_since = now;
}

static void note_unstuck(struct task_ctx *tctx)
{
	tctx->stuck = false;
	if (stuck_since && stuck_pid == tctx->pid)
		stuck_since = 0;
}

/* A job resumes only with more than half of its usual cost left: one nearly done may have ended. */
#define RESUME_LEAST_DIV 2

/* It did not sleep of its own accord, has hardly begun, and its next job is not due. */
static bool resumes_after_stuck(const struct task_ctx *tctx, u64 now)
{
	return tctx->stuck && tctx->open && remaining(tctx) > job_cost(tctx) / RESUME_LEAST_DIV &&
	       since(now, tctx->woke_at) < tctx->period_ns - tctx->period_ns / RELEASE_JITTER_DIV;
}

#endif /* __TEMPONET_STUCK_BPF_H */
