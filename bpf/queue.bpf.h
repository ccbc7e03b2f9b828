/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: for each domain (last-level cache) and each tier a DSQ for tasks that may move, and
 * for each CPU and tier one for tasks that may not. They are ordered by tier_key(): the late ones
 * by cost, all others by time.
 *
 * The length of a DSQ costs a hash look-up, and a dispatch would need eight of them. So waiting
 * tasks are counted here, all tiers of a domain or CPU in one cache line. The count goes up before
 * a task is inserted, and down when it runs, is inserted again, or leaves the scheduler. The count
 * is never too small; it may be too large while a task is between the count and the queue, which
 * costs one look at an empty DSQ.
 */
#ifndef __TEMPONET_QUEUE_BPF_H
#define __TEMPONET_QUEUE_BPF_H

#include "slack.bpf.h"
#include "state.bpf.h"

/* The queues of one domain or one CPU. */
struct lane {
	/* How many tasks wait, in the low half; how many have come so far, in the upper half. */
	u64 nr[TN_NR_TIERS];
	/* The last time that a task of the tier began to run, or that its queue was empty. Late
	 * tasks do not take turns by their order. For them it is the last time that the one that
	 * had waited longest began to run. */
	u64 served_at[TN_NR_TIERS];
} __attribute__((aligned(64)));

static struct lane lanes[NR_LANES];

/* For tests: so many of a thousand tasks are counted wrongly, or queued in a random domain. */
const volatile u32 miscount_permille;
const volatile u32 misplace_permille;

/* When a declared job was last released into each lane. */
static u64 lane_released[NR_LANES];
/* A short job was released into the lane, and follow() has not seen it yet. */
static bool lane_short_job[NR_LANES];

static struct lane *lane(u32 id)
{
	return &lanes[bounded(id, NR_LANES)];
}

/*
 * Where a task is queued for @cpu, which it may use (may_use()).
 *
 * The placement invariant: a queued task has, among the CPUs that serve its lane, one that is
 * online and that it may use. Each of those looks at the lane whenever it dispatches, and
 * patrols it for tasks that were passed over (bound.bpf.h). The invariant is kept
 *   - at enqueue(): the kernel calls it on a CPU that the task may use;
 *   - at select_cpu(): a task whose last CPU it may no longer use is left to enqueue();
 *   - when its affinity or cpuset changes while it waits: the kernel takes it out and enqueues
 *     it again;
 *   - when a CPU goes offline: placement.bpf.h moves the tasks that depended on it;
 *   - against faults in all this: patrol() checks it (placement.bpf.h).
 */
static u32 task_lane(const struct task_struct *p, s32 cpu)
{
	return pinned(p) ? cpu_lane(cpu) : dom_of(cpu);
}

/* Queue ids are DSQ ids. */
static u32 queue_id(u32 lane_id, u32 tier)
{
	return lane_id * TN_NR_TIERS + tier;
}

static int create_queues(u32 lane_id)
{
	u32 tier;
	int err;

	bpf_for(tier, 0, TN_NR_TIERS) {
		err = scx_bpf_create_dsq(queue_id(lane_id, tier), -1);
		if (err)
			return err;
	}
	return 0;
}

/* The word that counts the tasks in @queue, see struct lane. */
static u64 *queue_count(u32 queue)
{
	return &lane(queue / TN_NR_TIERS)->nr[bounded(queue, TN_NR_TIERS)];
}

/* One more task that came, in the upper half of the word. */
#define CAME_ONE (1ULL << 32)

/* A count below zero is wrong. It reads as a large one, so it hides no task (check_count()). */
static u32 queue_len(u32 queue)
{
	return *queue_count(queue);
}

static u32 lane_len(const struct lane *lane, u32 tier)
{
	return lane->nr[tier];
}

/* The jobs that wait in a lane: all but hogs. */
static u64 lane_jobs(const struct lane *lane)
{
	return (u64)lane_len(lane, TN_DECLARED) + lane_len(lane, TN_INFERRED) +
	       lane_len(lane, TN_LATE);
}

/* All tasks that wait in a lane. */
static u64 lane_waits(const struct lane *lane)
{
	return lane_jobs(lane) + lane_len(lane, TN_BACKGROUND);
}

/* The waiting jobs that compete by declared deadlines, or were given up. */
static u64 lane_claims(const struct lane *lane)
{
	return (u64)lane_len(lane, TN_DECLARED) + lane_len(lane, TN_LATE);
}

static u64 *queue_served_at(u32 queue)
{
	return &lane(queue / TN_NR_TIERS)->served_at[bounded(queue, TN_NR_TIERS)];
}

/* Counts the task in @queue. To be called before it is inserted. */
static void join_queue(struct task_ctx *tctx, u32 queue, u64 now)
{
	if (!queue_len(queue))
		*queue_served_at(queue) = now;
	__sync_fetch_and_add(queue_count(queue), CAME_ONE + 1);
	tctx->queue = queue + 1;
	/* The test counts one too many or one too few. */
	if (miscount_permille && bpf_get_prandom_u32() % 1000 < miscount_permille)
		__sync_fetch_and_add(queue_count(queue), bpf_get_prandom_u32() & 1 ? 1 : -1);
}

/* Counts the task out of its queue. Returns that queue, or -1. */
static s32 leave_queue(struct task_ctx *tctx)
{
	u32 queue;

	if (!tctx->queue)
		return -1;
	/* Another CPU may be moving the task to another queue (requeue.bpf.h). The one that swaps
	 * the number does the counting. */
	queue = __sync_lock_test_and_set(&tctx->queue, 0);
	if (!queue)
		return -1;
	queue--;
	__sync_fetch_and_sub(queue_count(queue), 1);
	return queue;
}

#define NO_KEY (~0ULL)
/* How many tasks are searched for one that may run here, where the first may not. */
#define HEAD_SCAN 32

/* head_key() where the first task may not run on @cpu. */
__weak u64 first_key(u32 queue, s32 cpu)
{
	struct task_struct *p;
	u64 key = NO_KEY;
	u32 *walked = begin_walk();

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			key = p->scx.dsq_vtime;
			break;
		}
		if (++*walked >= HEAD_SCAN)
			break;
	}
	return key;
}

/* The key of the first task in @queue that may run on @cpu. */
static u64 head_key(u32 queue, s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);

	if (!p)
		return NO_KEY;
	if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return p->scx.dsq_vtime;
	return first_key(queue, cpu);
}

/* Is the first declared job of the lane a short one? */
static bool short_job_first(u32 lane_id)
{
	u32 queue = queue_id(lane_id, TN_DECLARED);
	struct task_struct *p;
	struct task_ctx *tctx;

	if (!queue_len(queue))
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(queue);
	/* The task is counted and not inserted yet. It may be a short job. */
	if (!p)
		return true;
	tctx = task_ctx(p);
	return tctx && short_job(tctx);
}

static u64 tier_slice(u32 tier)
{
	return tier <= TN_INFERRED ? TN_SLICE_JOB : TN_SLICE_BACKGROUND;
}

/*
 * Functions that are __weak instead of static are verified once each, by themselves. Inlined into
 * dispatch(), the verifier would follow every path through all of them in turn, and give up.
 */

/* Does a task wait in the lane that @cpu may run? */
__weak int lane_has_work_for(u32 lane_id, s32 cpu)
{
	u32 tier;

	if (!lane_waits(lane(lane_id)))
		return false;
	bpf_for(tier, 0, TN_NR_TIERS) {
		u32 queue = queue_id(lane_id, tier);

		if (queue_len(queue) && head_key(queue, cpu) != NO_KEY)
			return true;
	}
	return false;
}

/*
 * Wakes an idle CPU for a task that waits in the domain. A CPU may have gone idle, past its look at
 * the queues, just when the task was queued. The CPU that queued it was running, and comes here at
 * its next tick.
 */
static void wake_idle_for_waiting(u32 dom)
{
	struct task_struct *p;
	u32 tier;
	s32 cpu;

	bpf_for(tier, 0, TN_NR_TIERS) {
		u32 queue = queue_id(dom, tier);

		if (!queue_len(queue))
			continue;
		p = __COMPAT_scx_bpf_dsq_peek(queue);
		if (!p)
			continue;
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (cpu < 0)
			continue;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
}

/* Does a declared job that @cpu may run wait in the lane, more urgent than @urg? */
static bool declared_before(u32 lane_id, s32 cpu, u64 urg)
{
	u64 key;

	if (!lane_len(lane(lane_id), TN_DECLARED))
		return false;
	key = head_key(queue_id(lane_id, TN_DECLARED), cpu);
	return key != NO_KEY && urgency(TN_DECLARED, key) < urg;
}

/* The same for both lanes that @cpu serves. */
static bool outranked_by_declared(s32 cpu, u32 dom, u64 urg)
{
	return declared_before(dom, cpu, urg) || declared_before(cpu_lane(cpu), cpu, urg);
}

/* Does a task wait that @cpu should run instead of one of urgency @urg? */
static bool outranked(s32 cpu, u32 dom, u64 urg)
{
	struct lane *shared = lane(dom), *own = lane(cpu_lane(cpu));
	u32 tier = urgency_tier(urg);

	if (tier > TN_INFERRED && (lane_len(shared, TN_INFERRED) | lane_len(own, TN_INFERRED)))
		return true;
	if (tier > TN_LATE && (lane_len(shared, TN_LATE) | lane_len(own, TN_LATE)))
		return true;
	return outranked_by_declared(cpu, dom, urg);
}

static u64 waits_per_cpu(s32 cpu, u32 dom)
{
	return lane_waits(lane(dom)) / nr_servers(dom) + lane_waits(lane(cpu_lane(cpu)));
}

#endif /* __TEMPONET_QUEUE_BPF_H */
