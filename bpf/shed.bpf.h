/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shedding: which jobs are given up in overload, where the agent does not say so.
 */
#ifndef __TEMPONET_SHED_BPF_H
#define __TEMPONET_SHED_BPF_H

#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* How many jobs are added up, and how many given up, in one dispatch. */
#define SHED_SCAN 16
#define SHED_MAX 4
/* A kept task makes room for a late one only if it costs an eighth more: two of about the same
 * cost would take each other's place for ever. */
#define SHED_MARGIN_NUM 9
#define SHED_MARGIN_DEN 8

enum shed {
	SHED_NONE,
	SHED_QUEUED, /* a waiting job was given up */
	SHED_PREV, /* the running one is to be */
};

/*
 * In overload somebody must be late. Add up the work of the waiting jobs and of
 * the running one (@prev_left > 0) in the order of their deadlines; where the
 * sum no longer fits before a deadline, give up the longest job so far (Moore
 * and Hodgson: that keeps the most jobs). One that is hopeless by itself is
 * given up in the same way.
 */
__weak int shed_load(u32 lane_id, u32 servers, u64 prev_left, u64 prev_deadline, u64 now)
{
	u32 from = queue_id(lane_id, TN_DECLARED), victim = 0, scanned = 0;
	u64 work = 0, longest = 0;
	bool prev_longest = false, over = false;
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, from, 0) {
		u64 left, deadline;

		tctx = task_ctx(p);
		if (!tctx)
			break;
		deadline = hopeless_at(tctx);
		if (prev_left && time_before(prev_deadline, deadline)) {
			work += prev_left;
			prev_longest = prev_left > longest;
			if (prev_longest)
				longest = prev_left;
			over = (s64)work > (s64)(prev_deadline - now) * servers;
			prev_left = 0;
			if (over)
				break;
		}
		left = remaining(tctx);
		work += left;
		if (left > longest || (!victim && !prev_longest)) {
			longest = left;
			victim = p->pid;
			prev_longest = false;
		}
		over = (s64)work > (s64)(deadline - now) * servers;
		if (over || ++scanned >= SHED_SCAN)
			break;
	}
	if (!over)
		return SHED_NONE;
	this_stats()->hopeless++;
	if (prev_longest)
		return SHED_PREV;
	move_queued(from, TN_LATE, victim, now);
	return SHED_QUEUED;
}

/*
 * A late task that costs less per job than one that is kept on time is worth
 * more: the dearest of those makes room for it, until it has caught up.
 */
__weak int shed_costliest(u32 lane_id, u64 prev_cost, u64 now)
{
	u32 late = queue_id(lane_id, TN_LATE), from = queue_id(lane_id, TN_DECLARED);
	u32 victim = 0, scanned = 0;
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 costliest = 0;

	if (!queue_len(late))
		return SHED_NONE;
	bpf_for_each(scx_dsq, p, late, 0) {
		tctx = task_ctx(p);
		if (!tctx)
			break;
		/* Whom the agent gave up has no claim. */
		costliest = tctx->given_up ? 0 : job_cost(tctx) * SHED_MARGIN_NUM / SHED_MARGIN_DEN;
		break;
	}
	if (!costliest)
		return SHED_NONE;
	bpf_for_each(scx_dsq, p, from, 0) {
		tctx = task_ctx(p);
		if (!tctx)
			break;
		if (job_cost(tctx) > costliest) {
			costliest = job_cost(tctx);
			victim = p->pid;
		}
		if (++scanned >= SHED_SCAN)
			break;
	}
	if (!victim && prev_cost <= costliest)
		return SHED_NONE;
	this_stats()->hopeless++;
	if (prev_cost > costliest)
		return SHED_PREV;
	move_queued(from, TN_LATE, victim, now);
	return SHED_QUEUED;
}

/* Give up jobs that cannot all be on time, @prev among them if it runs one. */
static void shed(s32 cpu, u32 dom, struct task_ctx *prev, u64 now)
{
	u64 left = prev ? remaining(prev) : 0, deadline = prev ? hopeless_at(prev) : 0;
	u64 cost = prev ? job_cost(prev) : 0;
	int i;

	bpf_for(i, 0, SHED_MAX) {
		int shed = shed_load(dom, nr_servers(dom), left, deadline, now) ?:
				   shed_load(cpu_lane(cpu), 1, left, deadline, now);

		if (shed == SHED_NONE)
			break;
		if (shed == SHED_PREV) {
			left = 0;
			cost = 0;
			if (prev)
				prev->dropped = true;
		}
	}
	if ((shed_costliest(dom, cost, now) ?: shed_costliest(cpu_lane(cpu), cost, now)) == SHED_PREV &&
	    prev)
		prev->dropped = true;
}

#endif /* __TEMPONET_SHED_BPF_H */
