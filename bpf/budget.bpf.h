/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much a declared task may run: its budget, the grace on it, and the leeway it has earned.
 */
#ifndef __TEMPONET_BUDGET_BPF_H
#define __TEMPONET_BUDGET_BPF_H

#include "state.bpf.h"

/*
 * A job may run over its budget by this part before that counts as the next
 * job: boundaries and clocks are never exact.
 */
#define GRACE_SHIFT 4

/* What it declared for @jobs, and the grace. */
static u64 declared_for(const struct task_ctx *tctx, u64 jobs)
{
	return jobs * (tctx->runtime_ns + (tctx->runtime_ns >> GRACE_SHIFT));
}

/*
 * Has it had more than its declared share since it woke up? A task that is behind works
 * through its jobs without sleeping, and where one ends we can only guess: what it
 * declared tells better than our count whether it is ahead of itself.
 */
static bool over_share(const struct task_ctx *tctx, u64 now)
{
	u64 jobs = since(now, tctx->woke_at) / MAX(tctx->period_ns, 1) + 1;

	return tctx->burst_exec_ns > declared_for(tctx, jobs) + tctx->leeway_ns;
}

/*
 * A task is charged for what it did not do, too: an interrupt, a host's theft, which
 * come in lumps. What it is forgiven it earns at the rate that it declared, so that
 * none gets more than twice that for long, and keeps for when it is needed.
 */
static void settle_leeway(struct task_ctx *tctx, u64 now)
{
	u64 period = MAX(tctx->period_ns, 1024), slept = since(now, tctx->woke_at);
	u64 jobs = MAX((slept + period / 2) / period, 1);
	u64 over = since(tctx->burst_exec_ns, declared_for(tctx, jobs));
	u64 earned = (tctx->runtime_ns >> 10) * MIN(slept, 8 * period) / (period >> 10);

	tctx->leeway_ns = MIN(tctx->leeway_ns + earned, MIN(period >> 3, TN_LEEWAY_MAX));
	tctx->leeway_ns -= MIN(over, tctx->leeway_ns);
}

#endif /* __TEMPONET_BUDGET_BPF_H */
