/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement: every queued task must be in a lane that an online CPU of its own serves. The
 * invariant is stated at task_lane() in queue.bpf.h. This file keeps it when CPUs come and go, and
 * checks it now and then: a task in a lane that no CPU of its own serves would wait for ever.
 */
#ifndef __TEMPONET_PLACEMENT_BPF_H
#define __TEMPONET_PLACEMENT_BPF_H

#include "group.bpf.h"
#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "state.bpf.h"

/* How many tasks of a queue one check looks at. Those behind move up until they are looked at. */
#define PLACEMENT_SCAN 32
/* A count is wrong if it differs from its queue for this long while no task comes or goes. */
#define DRIFT_AFTER (1000 * TN_MSEC)

/* CPUs that were online at load. The cache of any other CPU is not known. */
static bool cpu_known[TN_MAX_CPUS];

/*
 * The online CPUs of each domain as a mask. A loop over them for each task of a queue would cost
 * the verifier three times what all else in dispatch() does.
 */
struct dom_cpus {
	struct bpf_cpumask __kptr *online;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TN_MAX_DOMS);
	__type(key, u32);
	__type(value, struct dom_cpus);
} dom_masks SEC(".maps");

static int create_dom_mask(u32 dom)
{
	struct dom_cpus *cpus = bpf_map_lookup_elem(&dom_masks, &dom);
	struct bpf_cpumask *mask;

	if (!cpus)
		return -ENOENT;
	mask = bpf_cpumask_create();
	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(&cpus->online, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

static void mark_in_dom(s32 cpu, bool online)
{
	u32 dom = dom_of(cpu);
	struct dom_cpus *cpus = bpf_map_lookup_elem(&dom_masks, &dom);
	struct bpf_cpumask *mask;

	if (!cpus)
		return;
	bpf_rcu_read_lock();
	mask = cpus->online;
	if (mask && online)
		bpf_cpumask_set_cpu(cpu, mask);
	else if (mask)
		bpf_cpumask_clear_cpu(cpu, mask);
	bpf_rcu_read_unlock();
}

/* Does an online CPU that @p may use serve the lane? */
static bool lane_serves(u32 lane_id, const struct task_struct *p)
{
	struct dom_cpus *cpus;
	struct bpf_cpumask *mask;

	if (lane_id >= TN_MAX_DOMS)
		return may_use(p, lane_id - TN_MAX_DOMS);
	cpus = bpf_map_lookup_elem(&dom_masks, &lane_id);
	if (!cpus)
		return true;
	mask = cpus->online;
	return !mask || bpf_cpumask_intersects(cast_mask(mask), p->cpus_ptr);
}

/*
 * Moves the tasks of @queue that depend on @cpu, which goes offline. Tasks that the kernel accounts
 * to @cpu go to its local DSQ. The CPU takes them from there once more and hands them to one that
 * is left, where they are enqueued again. Other tasks may lose the last CPU of their own that
 * served the lane. They move to the lane of the CPU that the kernel accounts them to.
 */
__weak int evacuate(u32 queue, s32 cpu, u64 now)
{
	u32 lane_id = queue / TN_NR_TIERS, to;
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, queue, 0) {
		s32 home = scx_bpf_task_cpu(p);

		if (home == cpu) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
			continue;
		}
		if (lane_serves(lane_id, p))
			continue;
		tctx = task_ctx(p);
		to = queue_id(task_lane(p, home), queue % TN_NR_TIERS);
		if (!tctx || to == queue || !recount(tctx, queue, to, now))
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, p->scx.dsq_vtime);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0))
			scx_bpf_kick_cpu(home, SCX_KICK_IDLE);
		else
			recount(tctx, to, queue, now);
	}
	return 0;
}

/*
 * Checks the first tasks in @queue, which @cpu serves. A task that no CPU of the lane may run moves
 * to the lane of the CPU that the kernel accounts it to. If it may not use that CPU either, its
 * affinity is just changing: it stays, and the kernel enqueues it again.
 */
__weak int check_placement(u32 queue, s32 cpu, u64 now)
{
	u32 lane_id = queue / TN_NR_TIERS, to;
	u32 *walked = begin_walk();
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, queue, 0) {
		s32 home;

		if (++*walked > PLACEMENT_SCAN)
			break;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || lane_serves(lane_id, p))
			continue;
		home = scx_bpf_task_cpu(p);
		tctx = task_ctx(p);
		to = queue_id(task_lane(p, home), queue % TN_NR_TIERS);
		if (!tctx || to == queue || !may_use(p, home) || !recount(tctx, queue, to, now))
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, p->scx.dsq_vtime);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0)) {
			this_stats()->misplaced++;
			scx_bpf_kick_cpu(home, SCX_KICK_IDLE);
		} else {
			recount(tctx, to, queue, now);
		}
	}
	return 0;
}

/* A queue's count, and since when it has not changed while it was wrong. */
struct watched {
	u64 count;
	u64 since;
};

static struct watched watched[NR_LANES * TN_NR_TIERS];

/*
 * Checks the count of @queue. It may differ from the queue while a task is between the two. If it
 * does and no task has come or gone for DRIFT_AFTER, it is wrong, and is corrected. A count that is
 * too large costs looks at an empty queue. One that is too small would hide waiting tasks.
 */
__weak int check_count(u32 queue, u64 now)
{
	struct watched *seen = &watched[bounded(queue, NR_LANES * TN_NR_TIERS)];
	u64 count = *queue_count(queue);
	s32 there = scx_bpf_dsq_nr_queued(queue);

	if (there < 0 || (u32)count == (u32)there || count != seen->count) {
		seen->count = count;
		seen->since = now;
		return 0;
	}
	if (since(now, seen->since) < DRIFT_AFTER)
		return 0;
	if (__sync_val_compare_and_swap(queue_count(queue), count,
					(count & ~(CAME_ONE - 1)) | (u32)there) == count)
		this_stats()->drifted++;
	return 0;
}

/* Checks all queues that @cpu serves. Called from dispatch() only, where tasks may be moved. */
__weak int check_lanes(s32 cpu, u32 dom, u64 now)
{
	u32 tier;

	bpf_for(tier, 0, TN_NR_TIERS) {
		check_placement(queue_id(dom, tier), cpu, now);
		check_count(queue_id(dom, tier), now);
		check_count(queue_id(cpu_lane(cpu), tier), now);
	}
	return 0;
}

static void note_online(s32 cpu)
{
	u32 dom = dom_of(cpu);

	if (is_online(cpu))
		return;
	cpu_online[bounded(cpu, TN_MAX_CPUS)] = true;
	mark_in_dom(cpu, true);
	if (!__sync_fetch_and_add(&dom_online[dom], 1))
		__sync_fetch_and_sub(&nr_dead_doms, 1);
	note_capacity(__sync_fetch_and_add(&nr_online, 1) + 1);
	__sync_fetch_and_add(&hotplugs, 1);
	cpu_ctx(cpu)->urgency = URGENCY_IDLE;
	cpu_ctx(cpu)->preempt_pending = false;
}

/* A CPU that was offline at load needs a reload: its cache, and so its domain, is not known. */
void BPF_STRUCT_OPS(temponet_cpu_online, s32 cpu)
{
	if (cpu_known[bounded(cpu, TN_MAX_CPUS)]) {
		note_online(cpu);
		return;
	}
	scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG,
		     "CPU %d came online and was not there at load", cpu);
}

/* From here on the kernel neither enqueues tasks for @cpu nor calls dispatch() on it. */
void BPF_STRUCT_OPS(temponet_cpu_offline, s32 cpu)
{
	u32 dom = dom_of(cpu), tier;
	u64 now = scx_bpf_now();

	if (!is_online(cpu))
		return;
	cpu_online[bounded(cpu, TN_MAX_CPUS)] = false;
	mark_in_dom(cpu, false);
	cpu_ctx(cpu)->urgency = URGENCY_NEVER;
	if (__sync_fetch_and_sub(&dom_online[dom], 1) == 1)
		__sync_fetch_and_add(&nr_dead_doms, 1);
	note_capacity(__sync_fetch_and_sub(&nr_online, 1) - 1);
	__sync_fetch_and_add(&hotplugs, 1);
	bpf_for(tier, 0, TN_NR_TIERS) {
		evacuate(queue_id(cpu_lane(cpu), tier), cpu, now);
		evacuate(queue_id(dom, tier), cpu, now);
	}
}

#endif /* __TEMPONET_PLACEMENT_BPF_H */
