/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max: a cgroup may run for its quota in each period, declared jobs included, and so may each
 * cgroup above it. What is overrun, by up to a tick, is taken from the next periods.
 *
 * A task of a cgroup that has used up its quota is parked in a queue of its own, which no CPU
 * serves, until the quota is there again. It is parked for TN_PARK_MAX at most. Then it is served
 * and gives the CPU back at once, so that the kernel's watchdog sees that it is looked after.
 * A parked task does not wait for the scheduler: its deadline moves, and its wait is not counted.
 *
 * The limits are read from the kernel's own books every QUOTA_POLL: only newer kernels tell a
 * scheduler when they change.
 */
#ifndef __TEMPONET_QUOTA_BPF_H
#define __TEMPONET_QUOTA_BPF_H

#include "group.bpf.h"
#include "queue.bpf.h"
#include "rcu.bpf.h"
#include "state.bpf.h"
#include "tier.bpf.h"

#define QUOTA_POLL (50 * TN_MSEC)
/* The id of the queue of parked tasks, after those of all lanes. */
#define PARK_DSQ (NR_LANES * TN_NR_TIERS)
/* How many tasks one dispatch puts back. */
#define UNPARK_MAX 32

/* CLOCK_MONOTONIC, for a timer. */
#define TIMER_CLOCK 1

struct park_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct park_timer);
} park_timers SEC(".maps");

static u32 nr_parked;
static u64 unpark_at; /* when the first parked task is due, 0: none */
static u64 park_timer_at; /* when the timer fires, 0: it is not set */

/* The kernel's structures, as far as they are read here. Kernels without one of the fields do not
 * have what it counts. */
struct cfs_bandwidth___tn {
	u64 period;
	u64 quota;
} __attribute__((preserve_access_index));

struct task_group___tn {
	struct cfs_bandwidth___tn cfs_bandwidth;
} __attribute__((preserve_access_index));

/* Reads the limit of @grp. The address of its cgroup is only ever read through. */
static void read_quota(struct group *grp, u64 now)
{
	struct task_group___tn *tg = NULL;
	struct cgroup *cgrp = (void *)grp->cgroup;
	u64 quota, period;

	grp->polled_at = now;
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id) ||
	    !bpf_core_field_exists(tg->cfs_bandwidth))
		return;
	/* The controller's state is the first member of the task group. */
	bpf_probe_read_kernel(&tg, sizeof(tg),
			      (void *)cgrp + bpf_core_field_offset(struct cgroup, subsys) +
				      bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id) *
					      sizeof(void *));
	if (!tg)
		return;
	quota = BPF_CORE_READ(tg, cfs_bandwidth.quota);
	period = BPF_CORE_READ(tg, cfs_bandwidth.period);
	if (quota == ~0ULL || !quota || !period)
		quota = period = 0;
	if (quota == grp->quota && period == grp->period)
		return;
	grp->period = 0;
	grp->quota = quota;
	grp->left = quota;
	grp->refill_at = now + period;
	grp->period = period;
}

/* Begins the periods that have passed. */
static void refill(struct group *grp, u64 now)
{
	u64 at = grp->refill_at, periods;

	if (time_before(now, at))
		return;
	periods = since(now, at) / MAX(grp->period, 1) + 1;
	if (__sync_val_compare_and_swap(&grp->refill_at, at, at + periods * grp->period) != at)
		return;
	__sync_fetch_and_add(&grp->left, MIN(periods, 1000) * grp->quota);
	/* What was not used is lost. */
	if (grp->left > (s64)grp->quota)
		grp->left = grp->quota;
}

/* Takes what ran from the quotas of the group and of those above it. */
__weak int charge_quotas(u32 id, u64 ran, u64 now)
{
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id);

		if (id == GROUP_ROOT)
			break;
		if (since(now, grp->polled_at) >= QUOTA_POLL)
			read_quota(grp, now);
		if (grp->period) {
			refill(grp, now);
			__sync_fetch_and_sub(&grp->left, ran);
		}
		id = grp->parent;
	}
	return 0;
}

/* When the quotas allow tasks of this group to run again; 0: now. */
__weak u64 throttled_until(u32 id, u64 now)
{
	u64 until = 0;
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id);
		s64 left;

		if (id == GROUP_ROOT)
			break;
		if (grp->period) {
			refill(grp, now);
			left = grp->left;
			if (left <= 0)
				until = MAX(until, grp->refill_at + (u64)-left /
						   MAX(grp->quota, 1) * grp->period);
		}
		id = grp->parent;
	}
	return until;
}

/* May @p be parked? A task that the kernel waits for may not. */
static u64 must_park(const struct task_struct *p, const struct task_ctx *tctx, u64 now)
{
	if (tctx->group == GROUP_ROOT || (p->flags & PF_KTHREAD) || is_exiting(p) ||
	    tctx->reader == READER_WAITS)
		return 0;
	return throttled_until(tctx->group, now);
}

static int on_park_timer(void *map, u32 *key, struct park_timer *timer)
{
	park_timer_at = 0;
	/* A CPU that is busy looks at its next tick. */
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_IDLE);
	return 0;
}

static int create_park(void)
{
	struct park_timer *timer;
	u32 key = 0;
	int err;

	err = scx_bpf_create_dsq(PARK_DSQ, -1);
	if (err)
		return err;
	timer = bpf_map_lookup_elem(&park_timers, &key);
	if (!timer)
		return -ENOENT;
	err = bpf_timer_init(&timer->timer, &park_timers, TIMER_CLOCK);
	return err ?: bpf_timer_set_callback(&timer->timer, on_park_timer);
}

/* An idle machine has no tick: the timer wakes a CPU when the first parked task is due. */
static void set_park_timer(u64 at, u64 now)
{
	struct park_timer *timer;
	u32 key = 0;

	if (park_timer_at && !time_before(at, park_timer_at))
		return;
	timer = bpf_map_lookup_elem(&park_timers, &key);
	if (!timer)
		return;
	park_timer_at = at;
	bpf_timer_start(&timer->timer, since(at, now), 0);
}

/* Parks a task that is being enqueued. */
static void park(struct task_struct *p, struct task_ctx *tctx, u64 until, u64 enq_flags, u64 now)
{
	until = MIN(until, now + TN_PARK_MAX);
	leave_shares(tctx);
	tctx->parked_at = now;
	tctx->queued_at = 0;
	tctx->turn_left = 0;
	this_stats()->parked++;
	__sync_fetch_and_add(&nr_parked, 1);
	if (!unpark_at || time_before(until, unpark_at))
		unpark_at = until;
	scx_bpf_dsq_insert_vtime(p, PARK_DSQ, TN_SLICE_BACKGROUND, until, enq_flags);
	set_park_timer(until, now);
}

/* The task is no longer parked. The time that it was does not count for its deadline. */
static void leave_park(struct task_ctx *tctx, u64 now)
{
	u64 at = __sync_lock_test_and_set(&tctx->parked_at, 0), parked;

	if (!at)
		return;
	__sync_fetch_and_sub(&nr_parked, 1);
	parked = since(now, at);
	tctx->release_at += parked;
	tctx->deadline_at += parked;
	this_stats()->parked_ns += parked;
}

static bool unpark_due(u64 now)
{
	return unpark_at && !time_before(now, unpark_at);
}

/* A CPU for which the task can be queued: the one where it ran last, else this one, else any. */
static s32 cpu_for(const struct task_struct *p, const struct task_ctx *tctx, s32 cpu)
{
	if (may_use(p, tctx->cpu))
		return tctx->cpu;
	return may_use(p, cpu) ? cpu : bpf_cpumask_any_distribute(p->cpus_ptr);
}

/* Queues parked tasks whose time has come. Called from dispatch() only. */
__weak int unpark(s32 this_cpu, u64 now)
{
	u32 *walked = begin_walk();
	struct task_struct *p;
	struct task_ctx *tctx;

	unpark_at = 0;
	bpf_for_each(scx_dsq, p, PARK_DSQ, 0) {
		u32 tier, queue;
		s32 cpu;

		if (time_after(p->scx.dsq_vtime, now) || (*walked)++ >= UNPARK_MAX) {
			unpark_at = p->scx.dsq_vtime;
			set_park_timer(MAX(unpark_at, now + TN_MSEC), now);
			break;
		}
		tctx = task_ctx(p);
		if (!tctx)
			continue;
		cpu = cpu_for(p, tctx, this_cpu);
		leave_park(tctx, now);
		tier = task_tier(tctx, cpu, now);
		tctx->run_tier = tier;
		note_tier(p, tctx, cpu, tier);
		begin_wait(tctx, now);
		queue = queue_id(task_lane(p, cpu), tier);
		join_queue(tctx, queue, now);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, tier_slice(tier));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tier_key(tctx, tier, now));
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0))
			leave_queue(tctx);
		else if (cpu != this_cpu)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	return 0;
}

#endif /* __TEMPONET_QUOTA_BPF_H */
