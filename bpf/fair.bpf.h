/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair share among hogs: the clock of virtual time, a hog's place on it, and turns that were cut
 * short. Hogs have no deadlines to be ordered by, so weights decide what each gets.
 */
#ifndef __TEMPONET_FAIR_BPF_H
#define __TEMPONET_FAIR_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"

/* The clock of virtual time, and how far it advanced in the last TN_AGING. CPUs update it without
 * a lock. A lost update leaves the clock a little behind until the next hog runs. */
static u64 vclock = 1ULL << 40;
static u64 vclock_step = 100 * TN_MSEC;
static u64 vclock_mark = 1ULL << 40;
static u64 vclock_mark_at;

static void advance_vclock(u64 vtime, u64 now)
{
	if (time_after(vtime, vclock))
		vclock = vtime;
	if (since(now, vclock_mark_at) >= TN_AGING) {
		vclock_mark_at = now;
		vclock_step = vclock - vclock_mark;
		vclock_mark = vclock;
	}
}

/* The range of virtual times that hogs may have, beginning one slice before the clock. A hog has no
 * credit for having slept, and no debt of more than the clock's advance in the last TN_AGING. */
static u64 hog_span(void)
{
	return MAX(vclock_step, TN_SLICE_BACKGROUND) + TN_SLICE_BACKGROUND;
}

/* Brings a hog's virtual time into that range. */
static void place_hog(struct task_ctx *tctx)
{
	u64 first = vclock - TN_SLICE_BACKGROUND, last = first + hog_span();

	if (time_before(tctx->vtime, first))
		tctx->vtime = first;
	else if (time_after(tctx->vtime, last))
		tctx->vtime = last;
}

/*
 * A turn may be cut short by a declared job, the agent, a real-time task, or a task that has waited
 * longer. A task that has not had half a millisecond by then keeps its waiting time, and a hog its
 * place. Otherwise the little that it ran would be all it gets for a second, or for a round of a
 * crowd: a nice-19 task beside twenty hogs of nice -20 waited for up to 8.6 s, and waits for 2.3 s
 * with this rule (docs/measurements/scheduler.md).
 */
static void grant_turn(struct task_ctx *tctx)
{
	if (!tctx->turn_left)
		tctx->turn_left = TN_SLICE_BOUND_CROWD;
}

/* Was the task's last turn cut short in its first half? */
static bool turn_unfinished(const struct task_ctx *tctx)
{
	return tctx->turn_left > TN_SLICE_BOUND_CROWD / 2;
}

/* The task joins a queue. */
static void begin_wait(struct task_ctx *tctx, u64 now)
{
	tctx->queued_at = now;
	if (turn_unfinished(tctx))
		return;
	tctx->turn_left = 0;
	tctx->waits_since = now;
}

/*
 * The key of a hog: the wall-clock time at which it should have its turn, within TN_AGING. The key
 * is not virtual time itself, because the clock may slow down from one moment to the next. A hog
 * that was placed far ahead while it was fast would then see all later ones go first: of 2,000 hogs
 * that wake up together, one waited for 7 s (docs/measurements/scheduler.md).
 */
static u64 hog_key(const struct task_ctx *tctx, u64 now)
{
	u64 span = hog_span(), behind = since(tctx->vtime, vclock - TN_SLICE_BACKGROUND);

	/* A hog whose turn was cut short keeps its place. */
	if (turn_unfinished(tctx))
		return tctx->waits_since;
	return now + MIN(behind, span) / (span >> 16) * (TN_AGING >> 16);
}

/* The slice of a hog. Where many wait, slices are so short that a round takes TN_AGING, but no
 * shorter than TN_SLICE_BOUND_CROWD. */
static u64 hog_slice(s32 cpu)
{
	u64 slice = TN_AGING / (waits_per_cpu(cpu, dom_of(cpu)) + 1);

	return MAX(MIN(slice, TN_SLICE_BACKGROUND), TN_SLICE_BOUND_CROWD);
}

#endif /* __TEMPONET_FAIR_BPF_H */
