/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: for each domain (last-level cache) and each tier a DSQ for tasks
 * that may move, and for each CPU and tier one for tasks that may not. Ordered by
 * time within the tier, the late ones by cost.
 *
 * A DSQ's length costs a hash look-up to ask for, and a dispatch would ask for
 * eight of them. So we count for ourselves, all tiers of a domain or CPU in one
 * cache line: up before a task is inserted, down when it runs (or is inserted
 * again, or leaves us). The count is never too small; it may be too large while
 * a task is between the count and the queue, which costs one look at an empty
 * DSQ.
 */
#ifndef __TEMPONET_QUEUE_BPF_H
#define __TEMPONET_QUEUE_BPF_H

/* The queues of one domain or one CPU. */
struct lane {
	/* How many wait, in the low half; how often somebody came, in the upper half. */
	u64 nr[TN_NR_TIERS];
	/* Last time one of the tier got to run, or its queue was empty. Late tasks
	 * do not take turns by themselves, so there it is the last time that the
	 * one waiting longest got to run. */
	u64 served_at[TN_NR_TIERS];
} __attribute__((aligned(64)));

static struct lane lanes[NR_LANES];

/* For tests: so many of a thousand tasks are counted wrong, or queued in a wrong domain. */
const volatile u32 miscount_permille;
const volatile u32 misplace_permille;

/* When a declared job was last queued there. */
static u64 lane_released[NR_LANES];
/* One of those since then was brief, and nobody was taken from there yet. */
static bool lane_brief[NR_LANES];

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
 *   - when a CPU goes offline: placement.bpf.h moves whoever depended on it;
 *   - against all that we overlooked: patrol() checks it (placement.bpf.h).
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

/* The word that counts who waits in @queue. */
static u64 *queue_count(u32 queue)
{
	return &lane(queue / TN_NR_TIERS)->nr[bounded(queue, TN_NR_TIERS)];
}

#define CAME_ONE (1ULL << 32)

/* A count below zero is wrong: somebody may wait all the same. */
static u32 count_of(u64 word)
{
	s32 nr = (u32)word;

	return nr < 0 ? 1 : nr;
}

static u32 queue_len(u32 queue)
{
	return count_of(*queue_count(queue));
}

static u32 lane_len(const struct lane *lane, u32 tier)
{
	return count_of(lane->nr[tier]);
}

/* Jobs that wait there, in whatever tier. */
static u64 lane_jobs(const struct lane *lane)
{
	return (u64)lane_len(lane, TN_DECLARED) + lane_len(lane, TN_INFERRED) +
	       lane_len(lane, TN_LATE);
}

/* All that wait there. */
static u64 lane_waits(const struct lane *lane)
{
	return lane_jobs(lane) + lane_len(lane, TN_BACKGROUND);
}

/* Those that compete by declared deadlines, or were given up for them. */
static u64 lane_claims(const struct lane *lane)
{
	return (u64)lane_len(lane, TN_DECLARED) + lane_len(lane, TN_LATE);
}

static u64 *queue_served_at(u32 queue)
{
	return &lane(queue / TN_NR_TIERS)->served_at[bounded(queue, TN_NR_TIERS)];
}

static void join_queue(struct task_ctx *tctx, u32 queue, u64 now)
{
	if (!queue_len(queue))
		*queue_served_at(queue) = now;
	__sync_fetch_and_add(queue_count(queue), CAME_ONE + 1);
	tctx->queue = queue + 1;
	/* Either too many or too few. */
	if (miscount_permille && bpf_get_prandom_u32() % 1000 < miscount_permille)
		__sync_fetch_and_add(queue_count(queue), bpf_get_prandom_u32() & 1 ? 1 : -1);
}

/* Returns the queue it was in, or -1. */
static s32 leave_queue(struct task_ctx *tctx)
{
	u32 queue;

	if (!tctx->queue)
		return -1;
	/* Another CPU may be moving it to another queue: whoever swaps the
	 * number out is the one who counts. */
	queue = __sync_lock_test_and_set(&tctx->queue, 0);
	if (!queue)
		return -1;
	queue--;
	__sync_fetch_and_sub(queue_count(queue), 1);
	return queue;
}

#define NO_KEY (~0ULL)
/* How far to look for one that may run here, where the first may not. */
#define HEAD_SCAN 32

__weak u64 first_key(u32 queue, s32 cpu)
{
	struct task_struct *p;
	u64 key = NO_KEY;
	int scanned = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			key = p->scx.dsq_vtime;
			break;
		}
		if (++scanned >= HEAD_SCAN)
			break;
	}
	return key;
}

/* By what the first task in @queue that may run on @cpu is ordered. */
static u64 head_key(u32 queue, s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);

	if (!p)
		return NO_KEY;
	if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return p->scx.dsq_vtime;
	return first_key(queue, cpu);
}

/* Is a brief job the first to be served by deadline? */
static bool brief_first(u32 lane_id)
{
	u32 queue = queue_id(lane_id, TN_DECLARED);
	struct task_struct *p;
	struct task_ctx *tctx;

	if (!queue_len(queue))
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(queue);
	/* Counted, and not there yet: it may be one. */
	if (!p)
		return true;
	tctx = task_ctx(p);
	return tctx && brief(tctx);
}

static u64 tier_slice(u32 tier)
{
	return tier <= TN_INFERRED ? TN_SLICE_JOB : TN_SLICE_BACKGROUND;
}

/*
 * The functions below that are not static are verified once each, by themselves;
 * inlined into dispatch() the verifier would follow every way through all of
 * them in turn, and give up.
 */

/* The task @pid of queue @from waits in another @tier of its lane from now on. A declared
 * job that has to is given up. */
__weak int move_queued(u32 from, u32 tier, u32 pid, u64 now)
{
	u32 to = queue_id(from / TN_NR_TIERS, tier);
	struct task_struct *p;
	struct task_ctx *tctx;

	bpf_for_each(scx_dsq, p, from, 0) {
		if (p->pid != pid)
			continue;
		tctx = task_ctx(p);
		/* Whoever swaps the number counts: p may be running by now. */
		if (!tctx || __sync_val_compare_and_swap(&tctx->queue, from + 1, to + 1) != from + 1)
			break;
		if (!queue_len(to))
			*queue_served_at(to) = now;
		__sync_fetch_and_add(queue_count(to), CAME_ONE + 1);
		__sync_fetch_and_sub(queue_count(from), 1);
		if (from % TN_NR_TIERS == TN_DECLARED)
			tctx->dropped = true;
		tctx->run_tier = tier;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, tier_slice(tier));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tier_key(tctx, tier, now));
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0))
			break;
		/* It ran and came back meanwhile: it still is where it was. */
		if (__sync_val_compare_and_swap(&tctx->queue, to + 1, from + 1) != to + 1)
			break;
		__sync_fetch_and_add(queue_count(from), CAME_ONE + 1);
		__sync_fetch_and_sub(queue_count(to), 1);
		tctx->run_tier = from % TN_NR_TIERS;
		break;
	}
	return 0;
}

/* How many jobs are added up, and how many given up, in one dispatch. */
#define SHED_SCAN 16
#define SHED_MAX 4

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
__weak int shed_dearest(u32 lane_id, u64 prev_cost, u64 now)
{
	u32 late = queue_id(lane_id, TN_LATE), from = queue_id(lane_id, TN_DECLARED);
	u32 victim = 0, scanned = 0;
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 dearest = 0;

	if (!queue_len(late))
		return SHED_NONE;
	bpf_for_each(scx_dsq, p, late, 0) {
		tctx = task_ctx(p);
		if (!tctx)
			break;
		/* Whom the agent gave up has no claim. */
		dearest = tctx->given_up ? 0 : job_cost(tctx) * 9 / 8;
		break;
	}
	if (!dearest)
		return SHED_NONE;
	bpf_for_each(scx_dsq, p, from, 0) {
		tctx = task_ctx(p);
		if (!tctx)
			break;
		if (job_cost(tctx) > dearest) {
			dearest = job_cost(tctx);
			victim = p->pid;
		}
		if (++scanned >= SHED_SCAN)
			break;
	}
	if (!victim && prev_cost <= dearest)
		return SHED_NONE;
	this_stats()->hopeless++;
	if (prev_cost > dearest)
		return SHED_PREV;
	move_queued(from, TN_LATE, victim, now);
	return SHED_QUEUED;
}

/*
 * A task without a rhythm is taken for as short as it was before, and a newcomer for
 * short, until they show otherwise. A crowd of them is not believed: it would stand
 * before all who have shown that they are short. It is one if so many of its kind as
 * wait here would keep the last of them waiting for TN_CROWD: eight newcomers per CPU,
 * or hundreds that pass messages.
 */
static bool crowded(u32 dom, const struct task_ctx *tctx)
{
	return !steady(tctx) && !tctx->rcu &&
	       lane_len(lane(dom), TN_INFERRED) * tctx->runtime_ns > (u64)TN_CROWD * nr_servers(dom);
}

enum served {
	SERVED_NONE,
	SERVED_MOVED,
	SERVED_KEEP, /* the running task is the one to run */
	SERVED_FOLLOWED, /* one was moved on the agent's word, and counted */
};

/* Tasks of other domains that nobody there has time for. */
static bool steal(u32 dom, u32 tier)
{
	int i;

	bpf_for(i, 1, nr_doms) {
		u32 queue = queue_id((dom + i) % nr_doms, tier);

		if (queue_len(queue) && scx_bpf_dsq_move_to_local(queue, 0)) {
			this_stats()->steals++;
			return true;
		}
	}
	return false;
}

/*
 * Serve one tier on @cpu, whose running task has urgency @prev_urg if it wants
 * to go on running.
 */
__weak int serve_tier(s32 cpu, u32 dom, u32 tier, u64 prev_urg)
{
	u64 shared_key = NO_KEY, own_key = NO_KEY;
	u64 nr_shared = queue_len(queue_id(dom, tier));
	u64 nr_own = queue_len(queue_id(cpu_lane(cpu), tier));
	u32 shared = queue_id(dom, tier), own = queue_id(cpu_lane(cpu), tier);
	bool compete;

	if (urgency_tier(prev_urg) < tier)
		return SERVED_KEEP;
	compete = urgency_tier(prev_urg) == tier;

	if (nr_shared | nr_own) {
		if (nr_shared && (nr_own || compete))
			shared_key = head_key(shared, cpu);
		if (nr_own && (nr_shared || compete))
			own_key = head_key(own, cpu);
		if (compete && prev_urg <= urgency(tier, MIN(shared_key, own_key)))
			return SERVED_KEEP;

		if (nr_own && own_key <= shared_key && scx_bpf_dsq_move_to_local(own, 0))
			return SERVED_MOVED;
		if (nr_shared && scx_bpf_dsq_move_to_local(shared, 0))
			return SERVED_MOVED;
		if (nr_own && own_key > shared_key && scx_bpf_dsq_move_to_local(own, 0))
			return SERVED_MOVED;
	}
	if (compete)
		return SERVED_KEEP;
	return nr_doms > 1 && steal(dom, tier) ? SERVED_MOVED : SERVED_NONE;
}

/* Does anybody wait in the lane whom @cpu may run? */
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
 * A task may have been queued just when a CPU went idle past its look at the
 * queue. Whoever queued it was running, and gets here.
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

#endif /* __TEMPONET_QUEUE_BPF_H */
