/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task's tier, and the key that orders it within the tier. Both change with time alone, so they
 * are computed anew at every enqueue, tick and dispatch.
 */
#ifndef __TEMPONET_TIER_BPF_H
#define __TEMPONET_TIER_BPF_H

#include "board.bpf.h"
#include "fair.bpf.h"
#include "lend.bpf.h"
#include "load.bpf.h"
#include "params.bpf.h"
#include "pressure.bpf.h"
#include "rcu.bpf.h"
#include "rhythm.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* The tier that a task runs or waits in now. __weak, as is tier_key(): inlined into dispatch(), the
 * verifier would need more than the million steps that it allows. */
__weak u32 task_tier(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	u32 said = TN_VERDICT_NONE;

	if (has_loan(tctx, now))
		return TN_DECLARED;
	if (tctx->rcu && tctx->base != TN_DECLARED)
		return TN_INFERRED;
	if (tctx->base == TN_BACKGROUND)
		return TN_BACKGROUND;
	if (tctx->base == TN_DECLARED)
		said = verdict(tctx, now);
	/* The agent gave the task up under a higher load. All declared tasks fit now. */
	if (said == TN_VERDICT_GIVE_UP && feasible(cpu, now))
		said = TN_VERDICT_NONE;

	/*
	 * This period's budget is used up: the task is throttled (throttle.bpf.h). A declared task
	 * that overran yields to all declared jobs that are within their budgets. Where the agent
	 * found room for it, it yields only to those that are due before its own next deadline,
	 * unless it has not slept for longer than any loan lasts: then it is not behind, it never
	 * ends. A task that has used up its next period's budget as well is a hog until that period
	 * begins, whatever it declared.
	 */
	if (time_after(tctx->release_at, now + TN_CLOCK_SKEW)) {
		if (tctx->base == TN_INFERRED ||
		    time_after(tctx->release_at, now + tctx->period_ns))
			return TN_BACKGROUND;
		return said == TN_VERDICT_KEEP && since(now, tctx->woke_at) <= TN_LOAN_MAX ?
			       TN_DECLARED :
			       TN_INFERRED;
	}

	/* Others wait for their share of what the declared jobs leave. */
	if (tctx->base == TN_INFERRED && beyond_share(tctx, cpu, keeps_rhythm(tctx, now)))
		return TN_BACKGROUND;
	/* Without a steady rhythm the deadline is a guess, and no job is hopeless by a guess. */
	if (tctx->base == TN_INFERRED && !steady(tctx))
		return tctx->demoted ? TN_BACKGROUND : TN_INFERRED;
	/* The agent sees more than one queue, so a task that it gives up is late. A task that it
	 * keeps is not kept at all costs: where the kept ones do not fit, the rule below holds for
	 * them too. */
	tctx->given_up = said == TN_VERDICT_GIVE_UP;
	tctx->kept = said == TN_VERDICT_KEEP;
	if (tctx->kept)
		tctx->due_at = agreed_deadline(tctx, now);
	if (tctx->given_up)
		return TN_LATE;
	if (!overloaded(cpu, tctx->base == TN_DECLARED, now))
		return tctx->base;
	/* A task that was given up stays late until it is on time again (release_job(),
	 * roll_job()). */
	if (time_before(hopeless_at(tctx), now + remaining(tctx)))
		tctx->dropped = true;
	return tctx->dropped ? TN_LATE : tctx->base;
}

/* Tasks that the agent gave up come after all other late tasks: no job costs this much. */
#define GIVEN_UP_LAST (1ULL << 50)

/* The key that orders a task within @tier; the smallest is served first. */
__weak u64 tier_key(struct task_ctx *tctx __arg_nonnull, u32 tier, u64 now)
{
	/* An RCU grace period waits for this task, which needs only a moment (rcu.bpf.h). */
	if (tier > TN_INFERRED && tctx->reader == READER_WAITS)
		return 0;
	if (tier == TN_DECLARED && tctx->loan_until)
		return tctx->loan_deadline;
	if (tier == TN_BACKGROUND)
		return hog_key(tctx, now);
	/* Late tasks catch up one after the other, the cheapest first: that gives the most jobs on
	 * time for the work. */
	if (tier == TN_LATE)
		return job_cost(tctx) + tctx->tie + (tctx->given_up ? GIVEN_UP_LAST : 0);
	if (tier == TN_INFERRED && tctx->rcu)
		return rcu_key(tctx, now);
	/* A job stands no further back than if it were due half the bound after its release, or a
	 * distant deadline would keep it waiting beyond the bound. */
	return MIN(due_at(tctx), tctx->release_at + TN_STARVE_BOUND / 2);
}

static u64 task_urgency(struct task_ctx *tctx, s32 cpu, u64 now)
{
	u32 tier = task_tier(tctx, cpu, now);

	return urgency(tier, tier_key(tctx, tier, now));
}

#endif /* __TEMPONET_TIER_BPF_H */
