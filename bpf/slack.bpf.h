/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job's remaining work, its cost, and its slack: the time to its deadline beyond the remaining
 * work. Overload, shedding and the agent's table all judge jobs by these.
 */
#ifndef __TEMPONET_SLACK_BPF_H
#define __TEMPONET_SLACK_BPF_H

#include "state.bpf.h"

/* A task that wakes up a period after its last wake-up, less this part of it, has come for its next
 * job. The size of the tolerance is a choice, not a measured one. */
#define RELEASE_JITTER_DIV 16

__weak u64 remaining(const struct task_ctx *tctx __arg_nonnull)
{
	u64 work = tctx->budget_ns;

	/* Declared runtimes are worst cases. What the task's jobs usually take tells better
	 * whether this one can still be on time. */
	if (tctx->samples >= COST_SAMPLES)
		work = MIN(work, tctx->burst_ns);
	return work > tctx->exec_ns ? work - tctx->exec_ns : 0;
}

/* What a job of this task usually takes. In overload the cheapest tasks stay on time. */
static u64 job_cost(const struct task_ctx *tctx)
{
	return tctx->samples >= COST_SAMPLES ? MIN(tctx->runtime_ns, tctx->burst_ns) :
					       tctx->runtime_ns;
}

static s64 slack(const struct task_ctx *tctx, u64 now)
{
	return (s64)(tctx->deadline_at - now - remaining(tctx));
}

/* Would the job be late if it ran at half of the clock? */
static bool little_slack(const struct task_ctx *tctx, u64 now)
{
	return slack(tctx, now) < (s64)remaining(tctx);
}

/* By when the job is to be done. A kept task that is behind has a later date from the agent, so
 * that it makes nobody else late while it catches up. */
static u64 due_at(const struct task_ctx *tctx)
{
	return tctx->kept ? MAX(tctx->deadline_at, tctx->due_at) : tctx->deadline_at;
}

/*
 * The time by which a job must end, or it is hopeless. A task that the agent keeps has one period
 * more. The kept tasks fit together, so a task that is a little behind catches up if it keeps its
 * place, and falls further behind if it loses it.
 */
static u64 hopeless_at(const struct task_ctx *tctx)
{
	return due_at(tctx) + (tctx->kept ? tctx->period_ns : 0);
}

/* No decision of the agent can come in time for a short job. */
static bool short_job(const struct task_ctx *tctx)
{
	return tctx->base == TN_DECLARED && tctx->run_tier == TN_DECLARED &&
	       tctx->runtime_ns <= TN_SHORT_JOB_RUNTIME &&
	       tctx->rel_deadline_ns <= TN_SHORT_JOB_DEADLINE;
}

#endif /* __TEMPONET_SLACK_BPF_H */
