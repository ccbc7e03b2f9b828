/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement: keeping every queued task where a CPU that it may use looks for it (the invariant
 * is stated at task_lane()) while CPUs come and go, and checking it.
 */
#ifndef __TEMPONET_PLACEMENT_BPF_H
#define __TEMPONET_PLACEMENT_BPF_H

#include "queue.bpf.h"
#include "requeue.bpf.h"
#include "state.bpf.h"

/* How many tasks of a queue one check looks at. What stands behind them comes nearer. */
#define PLACEMENT_SCAN 32
/* A count that differs from its queue for this long, while nobody comes or goes, is wrong. */
#define DRIFT_AFTER (1000 * TN_MSEC)

/* CPUs that were there when we were loaded: only of those do we know the cache. */
static bool cpu_known[TN_MAX_CPUS];

/* Does a CPU look at the lane that @p may use? */
static bool lane_serves(u32 lane_id, const struct task_struct *p)
{
	u32 start, i;

	if (lane_id >= TN_MAX_DOMS)
		return may_use(p, lane_id - TN_MAX_DOMS);
	start = dom_start[bounded(lane_id, TN_MAX_DOMS)];
	bpf_for(i, 0, dom_len[bounded(lane_id, TN_MAX_DOMS)]) {
		if (start + i >= TN_MAX_CPUS)
			break;
		if (may_use(p, cpu_order[bounded(start + i, TN_MAX_CPUS)]))
			return true;
	}
	return false;
}

/*
 * @cpu goes offline. It runs what is in its local queue once more and hands it to a CPU that is
 * left, where it is enqueued again: so all that the kernel accounts to it goes there. Others that
 * wait in @queue and lose with it the last CPU that looked for them there move to the queue of
 * the CPU that the kernel accounts them to.
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
 * The check: of the first tasks in @queue, which @cpu serves, those that no CPU of the lane may
 * run move to where the kernel accounts them. The affinity of a task may be changing just now;
 * then that is no better place, and the kernel enqueues the task again.
 */
__weak int check_placement(u32 queue, s32 cpu, u64 now)
{
	u32 lane_id = queue / TN_NR_TIERS, scanned = 0, to;
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, queue, 0) {
		s32 home;

		if (++scanned > PLACEMENT_SCAN)
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

/* What a queue's count was when it was last seen to change. */
struct watched {
	u64 count;
	u64 since;
};

static struct watched watched[NR_LANES * TN_NR_TIERS];

/*
 * A count may differ from its queue while a task is between the two. Where it does and nobody
 * has come or gone for DRIFT_AFTER, it has drifted. Too large, it costs looks at an empty queue;
 * too small, it would hide who waits.
 */
static void check_count(u32 queue, u64 now)
{
	struct watched *seen = &watched[bounded(queue, NR_LANES * TN_NR_TIERS)];
	u64 count = *queue_count(queue);
	s32 there = scx_bpf_dsq_nr_queued(queue);

	if (there < 0 || (u32)count == (u32)there || count != seen->count) {
		seen->count = count;
		seen->since = now;
		return;
	}
	if (since(now, seen->since) < DRIFT_AFTER)
		return;
	if (__sync_val_compare_and_swap(queue_count(queue), count,
					(count & ~(CAME_ONE - 1)) | (u32)there) == count)
		this_stats()->drifted++;
}

/* Of all queues that @cpu serves. Only from dispatch(), where tasks may be moved. */
static void check_lanes(s32 cpu, u32 dom, u64 now)
{
	u32 tier;

	bpf_for(tier, 0, TN_NR_TIERS) {
		check_placement(queue_id(dom, tier), cpu, now);
		check_count(queue_id(dom, tier), now);
		check_count(queue_id(cpu_lane(cpu), tier), now);
	}
}

static void note_online(s32 cpu)
{
	u32 dom = dom_of(cpu);

	if (is_online(cpu))
		return;
	cpu_online[bounded(cpu, TN_MAX_CPUS)] = true;
	if (!__sync_fetch_and_add(&dom_online[dom], 1))
		__sync_fetch_and_sub(&nr_dead_doms, 1);
	__sync_fetch_and_add(&hotplugs, 1);
	cpu_ctx(cpu)->urgency = URGENCY_IDLE;
	cpu_ctx(cpu)->preempt_pending = false;
}

void BPF_STRUCT_OPS(temponet_cpu_online, s32 cpu)
{
	if (cpu_known[bounded(cpu, TN_MAX_CPUS)]) {
		note_online(cpu);
		return;
	}
	scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG,
		     "CPU %d came online and was not there at load", cpu);
}

/* From here on the kernel neither enqueues for @cpu nor has it dispatch. */
void BPF_STRUCT_OPS(temponet_cpu_offline, s32 cpu)
{
	u32 dom = dom_of(cpu), tier;
	u64 now = scx_bpf_now();

	if (!is_online(cpu))
		return;
	cpu_online[bounded(cpu, TN_MAX_CPUS)] = false;
	cpu_ctx(cpu)->urgency = URGENCY_NEVER;
	if (__sync_fetch_and_sub(&dom_online[dom], 1) == 1)
		__sync_fetch_and_add(&nr_dead_doms, 1);
	__sync_fetch_and_add(&hotplugs, 1);
	bpf_for(tier, 0, TN_NR_TIERS) {
		evacuate(queue_id(cpu_lane(cpu), tier), cpu, now);
		evacuate(queue_id(dom, tier), cpu, now);
	}
}

#endif /* __TEMPONET_PLACEMENT_BPF_H */
