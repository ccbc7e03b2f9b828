/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shedding: which declared jobs are given up in overload, where the agent has not decided that. The
 * aim is the most jobs on time. A job that is given up goes on in the late tier: Linux cannot abort
 * it.
 */
#ifndef __TEMPONET_SHED_BPF_H
#define __TEMPONET_SHED_BPF_H

#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* How many jobs of a queue one dispatch adds up, and how many it gives up at most. */
#define SHED_SCAN 16
#define SHED_MAX 4
/* A job is given up in favour of a late task only if it costs more by an eighth. Costs are running
 * means, so without a margin two tasks of about the same cost could swap places after every job.
 * The size of the margin is a choice, not a measured one. */
#define SHED_MARGIN_NUM 9
#define SHED_MARGIN_DEN 8

enum shed {
	SHED_NONE,
	SHED_QUEUED, /* a waiting job was given up */
	SHED_PREV, /* the running job is to be given up */
};

/*
 * Gives up one job if not all can be on time. The work of the waiting jobs and of the running one
 * (@prev_left > 0) is added up in the order of their deadlines. Where the sum no longer fits before
 * a deadline, the longest job so far is given up (Moore and Hodgson: that keeps the most jobs). A
 * job that is hopeless by itself is found in the same way.
 */
__weak int shed_load(u32 lane_id, u32 servers, u64 prev_left, u64 prev_deadline, u64 now)
{
	u32 from = queue_id(lane_id, TN_DECLARED), victim = 0, *walked = begin_walk();
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
		if (over || ++*walked >= SHED_SCAN)
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
 * Gives up the costliest job if a late task's jobs cost less. More jobs of the cheaper task fit
 * into the same time. The costlier one stays late until it has caught up.
 */
__weak int shed_costliest(u32 lane_id, u64 prev_cost, u64 now)
{
	u32 late = queue_id(lane_id, TN_LATE), from = queue_id(lane_id, TN_DECLARED);
	u32 victim = 0, *walked = begin_walk();
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 costliest = 0;

	if (!queue_len(late))
		return SHED_NONE;
	bpf_for_each(scx_dsq, p, late, 0) {
		tctx = task_ctx(p);
		if (!tctx)
			break;
		/* No job makes room for a task that the agent gave up. */
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
		if (++*walked >= SHED_SCAN)
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

/* Gives up jobs where not all can be on time. @prev: the running task, if it has a declared job. */
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
	if ((shed_costliest(dom, cost, now) ?: shed_costliest(cpu_lane(cpu), cost, now)) ==
		    SHED_PREV &&
	    prev)
		prev->dropped = true;
}

#endif /* __TEMPONET_SHED_BPF_H */
