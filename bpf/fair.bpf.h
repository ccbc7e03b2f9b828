/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair share among hogs: the clock of virtual time, a place on it, and turns that were cut short.
 */
#ifndef __TEMPONET_FAIR_BPF_H
#define __TEMPONET_FAIR_BPF_H

#include "queue.bpf.h"
#include "state.bpf.h"

/* Fair-share clock of the hogs, and how far it went in the last TN_AGING. */
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

/* How far around the clock's hand a hog's virtual time counts: no credit for having
 * slept, and no debt of more than the hand goes in TN_AGING. */
static u64 hog_span(void)
{
	return MAX(vclock_step, TN_SLICE_BACKGROUND) + TN_SLICE_BACKGROUND;
}

static void place_hog(struct task_ctx *tctx)
{
	u64 first = vclock - TN_SLICE_BACKGROUND, last = first + hog_span();

	if (time_before(tctx->vtime, first))
		tctx->vtime = first;
	else if (time_after(tctx->vtime, last))
		tctx->vtime = last;
}

/*
 * Who is cut short (by a declared job, the agent, a real-time task, somebody who waited for
 * longer) waits on since before, until it has had a little: what it did so far would be all
 * for a second, or for a round of a crowd.
 */
static void grant_turn(struct task_ctx *tctx)
{
	if (!tctx->turn_left)
		tctx->turn_left = TN_SLICE_BOUND_CROWD;
}

static bool turn_unfinished(const struct task_ctx *tctx)
{
	return tctx->turn_left > TN_SLICE_BOUND_CROWD / 2;
}

/* It joins a queue. */
static void begin_wait(struct task_ctx *tctx, u64 now)
{
	tctx->queued_at = now;
	if (turn_unfinished(tctx))
		return;
	tctx->turn_left = 0;
	tctx->waits_since = now;
}

/*
 * When it should be a hog's turn, in the time of the wall, within TN_AGING: the clock's
 * hand may go slower from one moment to the next, and who was placed by how fast it went
 * would see all that come later go first.
 */
static u64 hog_key(const struct task_ctx *tctx, u64 now)
{
	u64 span = hog_span(), behind = since(tctx->vtime, vclock - TN_SLICE_BACKGROUND);

	/* It keeps its place. */
	if (turn_unfinished(tctx))
		return tctx->waits_since;
	return now + MIN(behind, span) / (span >> 16) * (TN_AGING >> 16);
}

/* Where many hogs wait they take turns so short that a round takes TN_AGING, no less than a
 * tick or two each. */
static u64 hog_slice(s32 cpu)
{
	u64 slice = TN_AGING / (waits_per_cpu(cpu, dom_of(cpu)) + 1);

	return MAX(MIN(slice, TN_SLICE_BACKGROUND), TN_SLICE_BOUND_CROWD);
}

#endif /* __TEMPONET_FAIR_BPF_H */
