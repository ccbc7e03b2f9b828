/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task stands: its tier, and its place within the tier.
 */
#ifndef __TEMPONET_TIER_BPF_H
#define __TEMPONET_TIER_BPF_H

#include "board.bpf.h"
#include "fair.bpf.h"
#include "load.bpf.h"
#include "params.bpf.h"
#include "pressure.bpf.h"
#include "rcu.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* Where a task stands now, and by which time it is ordered there. */
static u32 task_tier(struct task_ctx *tctx, s32 cpu, u64 now)
{
	u32 said = TN_VERDICT_NONE;

	if (tctx->rcu && tctx->base != TN_DECLARED)
		return TN_INFERRED;
	if (tctx->base == TN_BACKGROUND)
		return TN_BACKGROUND;
	if (tctx->base == TN_DECLARED)
		said = verdict(tctx, now);
	/* That was when there was more to do. */
	if (said == TN_VERDICT_GIVE_UP && feasible(cpu, now))
		said = TN_VERDICT_NONE;

	/*
	 * The budget of this period is used up and the next one's is being eaten
	 * ahead of time. For a declared task a little of that is a job that
	 * overran: it yields to all who are within their budgets, or, where the
	 * agent found room for it, to those who are due before its next period is.
	 * A whole period ahead is a hog that declared itself important.
	 */
	if (time_after(tctx->release_at, now + TN_CLOCK_SKEW)) {
		if (tctx->base == TN_INFERRED ||
		    time_after(tctx->release_at, now + tctx->period_ns))
			return TN_BACKGROUND;
		return said == TN_VERDICT_KEEP ? TN_DECLARED : TN_INFERRED;
	}

	/* An estimated deadline says that a job is hopeless only if the estimate
	 * is worth something. */
	if (tctx->base == TN_INFERRED && !steady(tctx))
		return tctx->demoted ? TN_BACKGROUND : TN_INFERRED;
	/* The agent sees further than this queue. But whom it keeps is not kept at all
	 * costs: where they do not fit either, our own rule goes on. */
	tctx->given_up = said == TN_VERDICT_GIVE_UP;
	tctx->kept = said == TN_VERDICT_KEEP;
	if (tctx->given_up)
		return TN_LATE;
	if (!overloaded(cpu, tctx->base == TN_DECLARED, now))
		return tctx->base;
	/* Once given up, a task is so until it is on time again. */
	if (time_before(hopeless_at(tctx), now + remaining(tctx)))
		tctx->dropped = true;
	return tctx->dropped ? TN_LATE : tctx->base;
}

/* Behind all costs there are. */
#define GIVEN_UP_LAST (1ULL << 50)

static u64 tier_key(const struct task_ctx *tctx, u32 tier, u64 now)
{
	/* A grace period waits for it, and a moment is all that it needs. */
	if (tier > TN_INFERRED && tctx->reader == READER_WAITS)
		return 0;
	if (tier == TN_BACKGROUND)
		return hog_key(tctx, now);
	/* Late tasks are brought back on time one after the other, the cheapest
	 * first: that is the most jobs on time for the work. */
	if (tier == TN_LATE)
		return job_cost(tctx) + tctx->tie + (tctx->given_up ? GIVEN_UP_LAST : 0);
	if (tier == TN_INFERRED && tctx->rcu)
		return rcu_key(tctx, now);
	/* A deadline many seconds away is no reason to wait for as long. */
	return MIN(tctx->deadline_at, tctx->release_at + TN_STARVE_BOUND / 2);
}

static u64 task_urgency(struct task_ctx *tctx, s32 cpu, u64 now)
{
	u32 tier = task_tier(tctx, cpu, now);

	return urgency(tier, tier_key(tctx, tier, now));
}

#endif /* __TEMPONET_TIER_BPF_H */
