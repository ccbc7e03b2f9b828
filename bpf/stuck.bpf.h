/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stuck tasks. In the middle of its job a declared task may sleep in the kernel for a lock whose
 * holder waits for a CPU below all jobs: khugepaged with the memory map of the task's process, or a
 * thread of that process that was given up. The kernel does not say which task holds the lock. So
 * all that may hold it have turns by the bound at once (take_holder() in bound.bpf.h). In the
 * `lock-holder` case this raised the jobs on time from 78.4 to 93.9 % and cut the worst response
 * from 707 to 249 ms, in one run each (docs/measurements/scheduler.md).
 *
 * Turns are given for one stuck task at a time, once per job, and for TN_STUCK_FOR at most. A disk
 * that does not answer is no reason to disturb other tasks for longer, and a program must not gain
 * turns for its threads by getting stuck on purpose.
 */
#ifndef __TEMPONET_STUCK_BPF_H
#define __TEMPONET_STUCK_BPF_H

#include "slack.bpf.h"
#include "state.bpf.h"

#define TASK_UNINTERRUPTIBLE 0x0002
/* The sleep of a task that waits for work, not for a lock. */
#define TASK_NOLOAD 0x0400

/*
 * The stuck task for which others have turns. Any CPU writes these when none is stuck, without a
 * lock. Two tasks that get stuck at the same moment may mix their numbers. That costs turns for
 * the wrong process, or turns that go on until TN_STUCK_FOR is over.
 */
static u32 stuck_pid;
static u32 stuck_tgid;
static u64 stuck_since; /* 0: none */

static bool anybody_stuck(u64 now)
{
	u64 from = stuck_since;

	return from && since(now, from) < TN_STUCK_FOR;
}

/* @p goes to sleep: is it stuck? */
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

/* A job has hardly begun if more than this part of its usual cost is left. The size is a choice,
 * not a measured one. */
#define RESUME_LEAST_DIV 2

/* Does the task, waking up after it was stuck, go on with its job and deadline? It does if the job
 * has hardly begun and the next one is not due. It did not choose to sleep, so the wake-up rule
 * does not apply. */
static bool resumes_after_stuck(const struct task_ctx *tctx, u64 now)
{
	return tctx->stuck && tctx->open && remaining(tctx) > job_cost(tctx) / RESUME_LEAST_DIV &&
	       since(now, tctx->woke_at) < tctx->period_ns - tctx->period_ns / RELEASE_JITTER_DIV;
}

#endif /* __TEMPONET_STUCK_BPF_H */
