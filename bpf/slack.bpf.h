/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is left to do of a job, what it costs, and how much time there is for it.
 */
#ifndef __TEMPONET_SLACK_BPF_H
#define __TEMPONET_SLACK_BPF_H

#include "state.bpf.h"

/* A wake-up within this part of a period before the next release counts as that release: timers
 * and clocks are never exact. */
#define RELEASE_JITTER_DIV 16

static u64 remaining(const struct task_ctx *tctx)
{
	u64 work = tctx->budget_ns;

	/* Declared runtimes are worst cases. What the task usually needs tells
	 * better whether it can still make it. */
	if (tctx->samples >= 2)
		work = MIN(work, tctx->burst_ns);
	return work > tctx->exec_ns ? work - tctx->exec_ns : 0;
}

/* What a job of this task costs: in overload the cheapest are worth most. */
static u64 job_cost(const struct task_ctx *tctx)
{
	return tctx->samples >= 2 ? MIN(tctx->runtime_ns, tctx->burst_ns) : tctx->runtime_ns;
}

static s64 slack(const struct task_ctx *tctx, u64 now)
{
	return (s64)(tctx->deadline_at - now - remaining(tctx));
}

/*
 * When it is too late for its job. Whom the agent keeps has a period more: those it
 * keeps fit together, so whoever falls behind a little catches up if he keeps his
 * place, and falls further behind if he loses it.
 */
static u64 hopeless_at(const struct task_ctx *tctx)
{
	return tctx->deadline_at + (tctx->kept ? tctx->period_ns : 0);
}

static bool short_job(const struct task_ctx *tctx)
{
	return tctx->base == TN_DECLARED && tctx->run_tier == TN_DECLARED &&
	       tctx->runtime_ns <= TN_SHORT_JOB_RUNTIME && tctx->rel_deadline_ns <= TN_SHORT_JOB_DEADLINE;
}

#endif /* __TEMPONET_SLACK_BPF_H */
