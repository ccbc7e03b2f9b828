/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bound: every queue, and every task in it, has a turn in time, whatever stands above it. So
 * nothing starves, and the kernel's watchdog has no reason to eject the scheduler.
 *
 * Turns come in three ways. A queue of a lower tier that was not served for long is due
 * (queue_due()). Each CPU searches now and then for single tasks that waited long in a queue that
 * is served (patrol()). While a declared task is stuck, tasks that may hold it up have turns
 * (take_holder()). Every turn is short, and turns together take no more than a third of a CPU.
 */
#ifndef __TEMPONET_BOUND_BPF_H
#define __TEMPONET_BOUND_BPF_H

#include "agent.bpf.h"
#include "fair.bpf.h"
#include "placement.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"
#include "take.bpf.h"

/*
 * Has the queue waited its bound? The more tasks wait in it, the more often it has a turn, so that
 * each has one within TN_STARVE_BOUND. TN_SERVE_LEAST keeps a crowd from taking the CPU from all
 * others. A queue that several CPUs serve is due as many times as often.
 */
__weak int queue_overdue(u32 queue, u64 now, u32 servers)
{
	/* A turn of a given-up job is taken from jobs that can be on time, so late queues have
	 * fewer. docs/measurements/agent.md has the runs with one and with four a second. */
	u64 every = queue % TN_NR_TIERS == TN_LATE ? TN_SERVE_LATE_EVERY : TN_SERVE_EVERY;
	u64 waited = since(now, *queue_served_at(queue)), nr = MAX(queue_len(queue), 1);

	every = MIN(every, MAX(TN_STARVE_BOUND / 2 / nr, TN_SERVE_LEAST));
	return waited * servers >= every;
}

static bool queue_due(u32 queue, u64 now, u32 servers)
{
	return queue_len(queue) && queue_overdue(queue, now, servers);
}

/* Takes a task from the queue if it is due. */
static bool take_due(u32 queue, s32 cpu, u64 now, u32 servers)
{
	u64 served = *queue_served_at(queue);

	if (!queue_due(queue, now, servers))
		return false;
	/* The turn is claimed before the task is taken: one CPU is enough. */
	*queue_served_at(queue) = now;
	/* Hogs take turns by virtual time. A job is still the first of its queue after its turn,
	 * so among jobs the turn goes to the one that has waited longest. */
	if (queue % TN_NR_TIERS == TN_BACKGROUND)
		return scx_bpf_dsq_move_to_local(queue, 0);
	if (!take_oldest(queue, cpu, now, FILTER_ANY))
		return false;
	/* The turn of a thread of RCU is not one of the turns that the others wait for. */
	if (cpu_ctx(cpu)->rcu_turn)
		*queue_served_at(queue) = served;
	return true;
}

/*
 * Searches the queues of one other domain for a task that has waited for half of the bound. The
 * CPUs there may be offline, or busy with more urgent tasks, while this CPU may run it too.
 */
__weak int patrol_other_domain(s32 cpu, u32 dom, u64 now)
{
	u32 other = (dom + 1 + cpu_ctx(cpu)->patrol_dom++ % (nr_doms - 1)) % nr_doms;
	u32 tier;

	if (!lane_waits(lane(other)))
		return false;
	bpf_for(tier, 0, TN_NR_TIERS) {
		if (queue_len(queue_id(other, tier)) &&
		    take_oldest(queue_id(other, tier), cpu, now - TN_STARVE_BOUND / 2,
				FILTER_UNFINISHED)) {
			this_stats()->steals++;
			return true;
		}
	}
	return false;
}

/*
 * A queue may be served all the time while one task in it never is: its own CPUs may be busy with
 * more urgent tasks while others serve the queue, or the agent may pass it over. So each CPU
 * searches its queues for such tasks now and then, whenever the queues were last served.
 */
__weak int patrol(s32 cpu, u32 dom, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	int i;

	if (time_before(now, cpuc->patrol_at))
		return false;
	cpuc->patrol_at = now + TN_SERVE_EVERY;
	check_lanes(cpu, dom, now);
	if (nr_doms > 1 && patrol_other_domain(cpu, dom, now))
		return true;
	bpf_for(i, 0, 2 * TN_NR_TIERS) {
		u32 at = cpuc->patrol_next++, tier = at % TN_NR_TIERS;
		u32 lane_id = at & TN_NR_TIERS ? dom : cpu_lane(cpu);
		u64 patience = tier == TN_BACKGROUND ? TN_AGING : TN_STARVE_BOUND / 2;

		if (take_oldest(queue_id(lane_id, tier), cpu, now - patience, FILTER_UNFINISHED)) {
			u64 waits = waits_per_cpu(cpu, dom) + 1;

			/* More such tasks may wait, so the next search comes sooner. */
			cpuc->patrol_at = now + MAX(MIN(TN_AGING * 2 / waits, TN_BOUND_REST),
						    TN_PATROL_LEAST);
			return true;
		}
	}
	return false;
}

/* May a task that holds up a stuck one have a turn here? */
static bool holder_due(const struct cpu_ctx *cpuc, u64 now)
{
	return anybody_stuck(now) && !time_before(now, cpuc->holder_at);
}

/*
 * Takes a task that may hold up a stuck one: a kernel thread, or a thread of the same process.
 * Kernel threads have turns as often as they want, because their work is mostly short. A thread of
 * the process may as well be a hog, so each has one turn. Either kind comes first every other time,
 * because some kernel threads are hogs too.
 */
static bool take_holder(s32 cpu, u32 dom, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	bool siblings = cpuc->siblings_first;

	if (!holder_due(cpuc, now))
		return false;
	cpuc->siblings_first = !siblings;
	if (take_lower(cpu, dom, now, siblings ? FILTER_SIBLING : FILTER_KTHREAD) ||
	    take_lower(cpu, dom, now, siblings ? FILTER_KTHREAD : FILTER_SIBLING))
		return true;
	cpuc->holder_at = now + TN_HOLDER_EVERY;
	return false;
}

static bool lane_due(u32 lane_id, u64 now, u32 servers)
{
	return queue_due(queue_id(lane_id, TN_LATE), now, servers) ||
	       queue_due(queue_id(lane_id, TN_BACKGROUND), now, servers) ||
	       queue_due(queue_id(lane_id, TN_INFERRED), now, servers);
}

/* Should @cpu dispatch for the bound? It may find that no task is due after all. */
static bool bound_due(s32 cpu, u32 dom, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	if (time_before(now, cpuc->bound_again))
		return false;
	if (agent_due(cpu, dom, now))
		return true;
	if ((!time_before(now, cpuc->patrol_at) || holder_due(cpuc, now)) &&
	    (nr_dead_doms || lane_waits(lane(dom)) + lane_waits(lane(cpu_lane(cpu)))))
		return true;
	return lane_due(cpu_lane(cpu), now, 1) || lane_due(dom, now, nr_servers(dom));
}

/* Serves a due queue of the lane. The tiers take turns: a crowd in one is due all the time. */
static bool take_lane_due(u32 lane_id, s32 cpu, u64 now, u32 servers)
{
	u32 tier = cpu_ctx(cpu)->bound_tier;
	int i;

	for (i = 0; i < 3; i++) {
		tier = tier >= TN_BACKGROUND || tier < TN_INFERRED ? TN_INFERRED : tier + 1;
		if (take_due(queue_id(lane_id, tier), cpu, now, servers)) {
			cpu_ctx(cpu)->bound_tier = tier;
			return true;
		}
	}
	return false;
}

/* Serves a due queue that @cpu serves. Its own lane and its domain's take turns, because either may
 * hold a crowd. */
static bool take_any_due(s32 cpu, u32 dom, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	cpuc->bound_shared = !cpuc->bound_shared;
	return (cpuc->bound_shared && take_lane_due(dom, cpu, now, nr_servers(dom))) ||
	       take_lane_due(cpu_lane(cpu), cpu, now, 1) ||
	       take_lane_due(dom, cpu, now, nr_servers(dom));
}

/*
 * Takes a task for the bound, if one is due. Called from dispatch() only, where tasks may be moved.
 * After a turn follows a pause of twice its length. So two thirds of the CPU stay with tasks that
 * are served in order, however many wait and however late the tick ends a turn. The pause is
 * TN_BOUND_REST at most: a real-time task or a host may have made the turn look long.
 */
__weak int serve_bound(s32 cpu, u32 dom, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	if (cpuc->bound_since) {
		cpuc->bound_again = now + MIN(2 * since(now, cpuc->bound_since), TN_BOUND_REST);
		cpuc->bound_since = 0;
	}
	if (time_before(now, cpuc->bound_again))
		return false;
	/* Holders do not have two turns in a row, or a task that is stuck again and again would
	 * take all turns. */
	cpuc->last_turn_holder = !cpuc->last_turn_holder && take_holder(cpu, dom, now);
	if (cpuc->last_turn_holder || take_agent(cpu, dom, now) || patrol(cpu, dom, now))
		cpuc->bound_turn = TURN_SINGLE;
	else if (take_any_due(cpu, dom, now))
		cpuc->bound_turn = TURN_QUEUE;
	else
		return false;
	cpuc->bound_since = now;
	return true;
}

/* The task that was taken for the bound begins to run. */
static void begin_turn(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 dom = dom_of(cpu);
	bool crowd = waits_per_cpu(cpu, dom) > TN_BOUND_CROWD;
	u64 slice = crowd ? TN_SLICE_BOUND_CROWD : TN_SLICE_BOUND;

	grant_turn(tctx);
	cpuc->bound_turn = TURN_NONE;
	cpuc->turn_until = scx_bpf_now() + slice;
	cpuc->urgency = MIN(cpuc->urgency, URGENCY_TURN);
	scx_bpf_task_set_slice(p, slice);
}

#endif /* __TEMPONET_BOUND_BPF_H */
