/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The board: what the agent says, and how much of it counts. The agent writes this memory and the
 * scheduler reads it. No word of it is trusted: indices are bounded and times are capped, so that
 * the worst it can do is change the order of tasks that wait anyway.
 */
#ifndef __TEMPONET_BOARD_BPF_H
#define __TEMPONET_BOARD_BPF_H

#include "state.bpf.h"

struct temponet_board board SEC(".data.board");

/* Set by userspace before loading: what decides while the agent answers. */
const volatile u32 best_level = TN_LEVEL_EDF;

/* When the agent was first rung for without an answer since, 0: it has answered. */
static u64 rung_at;
/* The level that current_level() found last, for userspace. */
u32 level_now;

static bool agent_wanted(void)
{
	return best_level == TN_LEVEL_AGENT;
}

/* Has the agent written a heartbeat since @rung? One from the far future is no sign of life: the
 * agent may be dead by then. */
static bool answered(u64 rung, u64 now)
{
	u64 at = board.heartbeat_at;

	return time_after(at, rung) && !time_after(at, now + TN_AGENT_LOST);
}

/* What decides now: the longer the agent is silent, the less of its word counts. */
static u32 current_level(u64 now)
{
	u32 level = best_level;
	u64 rung = rung_at;

	if (agent_wanted() && rung) {
		if (answered(rung, now)) {
			rung_at = 0;
		} else {
			u64 silence = since(now, rung);

			if (silence >= TN_AGENT_GONE)
				level = TN_LEVEL_EDF;
			else if (silence >= TN_AGENT_LOST)
				level = TN_LEVEL_DISTILLED;
			else if (silence >= TN_AGENT_LATE)
				level = TN_LEVEL_TABLE;
		}
	}
	if (level == TN_LEVEL_DISTILLED && !board.has_distilled)
		level = TN_LEVEL_EDF;
	if (level != level_now) {
		level_now = level;
		this_stats()->transitions[bounded(level, TN_NR_LEVELS)]++;
	}
	return level;
}

/* The agent's verdict on a task, if there is one that has not expired. */
static u32 verdict(const struct task_ctx *tctx, u64 now)
{
	u64 word, left;

	if (!agent_wanted())
		return TN_VERDICT_NONE;
	word = board.judgements[bounded(tctx->pid, TN_VERDICTS)].word;
	if (word >> 32 != tctx->pid)
		return TN_VERDICT_NONE;
	/* Both are in units of 2^20 ns. The difference is taken modulo 2^30, as the expiry is. */
	left = ((word >> 2) - (now >> 20)) & ((1ULL << 30) - 1);
	return left <= TN_VERDICT_MAX >> 20 ? word & 3 : TN_VERDICT_NONE;
}

/* By when the agent wants the job of a kept task done that is behind; its deadline otherwise. */
static u64 agreed_deadline(const struct task_ctx *tctx, u64 now)
{
	const struct temponet_judgement *said = &board.judgements[bounded(tctx->pid, TN_VERDICTS)];
	u64 due = said->due_at;

	if (!time_after(due, tctx->deadline_at) || time_after(due, now + TN_LOAN_MAX))
		return tctx->deadline_at;
	return due;
}

static bool table_fresh(u64 now)
{
	u64 until = board.table_until;

	return time_before(now, until) && until - now <= TN_TABLE_MAX;
}

/*
 * Reads the decision for @cpu. The agent clears the expiry before it writes a decision and sets it
 * last. So what is read between two readings of the same expiry belongs to that expiry. BPF has no
 * memory barrier of its own; an atomic operation serves as one.
 */
static bool read_decision(s32 cpu, struct temponet_decision *copy)
{
	volatile struct temponet_decision *decision = &board.decisions[bounded(cpu, TN_MAX_CPUS)];
	u64 barrier = 0;

	copy->expires_at = decision->expires_at;
	__sync_fetch_and_add(&barrier, 1);
	copy->task = decision->task;
	copy->made_at = decision->made_at;
	__sync_fetch_and_add(&barrier, 1);
	return copy->expires_at && decision->expires_at == copy->expires_at;
}

/* Is the decision neither expired nor older than the last release in the lanes that it is for? */
static bool decision_fresh(const struct temponet_decision *decision, u64 released_at, u64 now)
{
	u64 expires = decision->expires_at;

	return time_before(now, expires) && expires - now <= TN_PROMISE_MAX &&
	       !time_after(released_at, decision->made_at);
}

/* For how long any order meets all deadlines, by the agent's promise; 0: no promise. */
static u64 free_for(u64 now)
{
	u64 until = board.free_until;

	if (!agent_wanted() || !time_before(now, until) || until - now > TN_PROMISE_MAX)
		return 0;
	return until - now;
}

/* Always 0, which the verifier does not know. With a constant it would follow the binary searches
 * below to each of their bins. */
static volatile u32 zero;

/* The bins of the table, found by binary search. They are __weak so that the verifier checks each
 * once, not wherever it is called. */
__weak int slack_bin(s64 slack)
{
	u32 nr = MIN(board.nr_slack_edges, TN_SLACK_BINS - 2), count = zero, step;

	if (slack < 0)
		return 0;
	for (step = TN_SLACK_BINS / 2; step; step /= 2) {
		if (count + step <= nr &&
		    board.slack_edges[bounded(count + step - 1, TN_SLACK_BINS)] <= (u64)slack)
			count += step;
	}
	return 1 + count;
}

__weak int work_bin(u64 work)
{
	u32 nr = MIN(board.nr_work_edges, TN_WORK_BINS - 1), count = zero, step;

	for (step = TN_WORK_BINS / 2; step; step /= 2) {
		if (count + step <= nr &&
		    board.work_edges[bounded(count + step - 1, TN_WORK_BINS)] <= work)
			count += step;
	}
	return count;
}

/* Counts the age of a decision that is followed. The bucket is the binary logarithm of its us. */
__weak int note_age(u64 made_at, u64 now)
{
	u64 us = since(now, made_at) / TN_USEC;
	u32 bucket = 0, step;
	int i;

	for (i = 0, step = 16; i < 5; i++, step /= 2) {
		if (us >> step) {
			us >>= step;
			bucket += step;
		}
	}
	this_stats()->age[bounded(bucket, TN_AGE_BUCKETS)]++;
	return 0;
}

#endif /* __TEMPONET_BOARD_BPF_H */
