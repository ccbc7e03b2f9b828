/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much a declared task may run: its declared share, a grace on it, and the leeway that it has
 * earned. A task that exceeds all three is throttled (throttle.bpf.h).
 */
#ifndef __TEMPONET_BUDGET_BPF_H
#define __TEMPONET_BUDGET_BPF_H

#include "state.bpf.h"

/* A job may exceed its budget by 1/16 before the excess counts as the next job: boundaries and
 * clocks are never exact. */
#define GRACE_SHIFT 4

/* Products of two times are taken in units of 1024 ns, so that they fit into 64 bits. */
#define COARSE_SHIFT 10

/* The most leeway a task can have: an eighth of its period (and TN_LEEWAY_MAX). It bounds what the
 * task can run beyond its share at once. Twenty tasks at 1.25 of two vCPUs had 93.6 to 96.0 % of
 * their jobs on time with a fixed allowance of this size, 72.0 to 95.8 % with smaller ones, and
 * 93.3 to 96.0 % with leeway that is earned (docs/measurements/agent.md). */
#define LEEWAY_PERIOD_SHIFT 3
/* A wake-up earns leeway for no more than this many periods since the last one. */
#define LEEWAY_EARN_PERIODS 8

/* The CPU time that a task declared for @jobs, with the grace. */
static u64 declared_for(const struct task_ctx *tctx, u64 jobs)
{
	return jobs * (tctx->runtime_ns + (tctx->runtime_ns >> GRACE_SHIFT));
}

/*
 * Has the task run more since its wake-up than it declared for as many periods? A task that is
 * behind works through its jobs without sleeping, and where one of them ends is a guess. So the
 * declared share decides, not the count of jobs. By the count, twenty tasks at 1.25 of two vCPUs
 * had between 68.6 and 92.6 % of their jobs on time (docs/measurements/scheduler.md).
 */
static bool over_share(const struct task_ctx *tctx, u64 now)
{
	u64 jobs = since(now, tctx->woke_at) / MAX(tctx->period_ns, 1) + 1;

	return tctx->burst_exec_ns > declared_for(tctx, jobs) + tctx->leeway_ns;
}

/*
 * A task is also charged for time that it did not use: interrupts, or a host that took the CPU.
 * Such time comes in lumps, so a task saves leeway for it. It earns leeway at its declared rate,
 * and pays with it for what it ran beyond its share. So no task gets more than about twice its
 * declared share for long.
 */
static void settle_leeway(struct task_ctx *tctx, u64 now)
{
	u64 period = MAX(tctx->period_ns, 1 << COARSE_SHIFT), slept = since(now, tctx->woke_at);
	u64 jobs = MAX((slept + period / 2) / period, 1);
	u64 over = since(tctx->burst_exec_ns, declared_for(tctx, jobs));
	u64 earned = (tctx->runtime_ns >> COARSE_SHIFT) *
		     MIN(slept, LEEWAY_EARN_PERIODS * period) / (period >> COARSE_SHIFT);

	tctx->leeway_ns = MIN(tctx->leeway_ns + earned,
			      MIN(period >> LEEWAY_PERIOD_SHIFT, TN_LEEWAY_MAX));
	tctx->leeway_ns -= MIN(over, tctx->leeway_ns);
}

#endif /* __TEMPONET_BUDGET_BPF_H */
