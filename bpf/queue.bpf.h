/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues: for each domain (last-level cache) and each tier a DSQ for tasks
 * that may move, and for each CPU and tier one for tasks that may not. All are
 * ordered by time within the tier.
 *
 * A DSQ's length costs a hash look-up to ask for, and a dispatch would ask for
 * eight of them. So we count for ourselves: up before a task is inserted, down
 * when it runs (or is inserted again, or leaves us). The count is never too
 * small; it may be too large while a task is between the count and the queue,
 * which costs one look at an empty DSQ.
 */
#ifndef __TEMPONET_QUEUE_BPF_H
#define __TEMPONET_QUEUE_BPF_H

struct queue {
	u64 nr;
	u64 served_at; /* last time one of its tier got to run, or it was empty */
} __attribute__((aligned(64)));

/* (TN_MAX_DOMS + TN_MAX_CPUS) * TN_NR_TIERS, rounded up to a power of two: see
 * bounded(). */
#define NR_QUEUES 8192

static struct queue queues[NR_QUEUES];

static u32 shared_queue(u32 dom, u32 tier)
{
	return dom * TN_NR_TIERS + tier;
}

static u32 pinned_queue(s32 cpu, u32 tier)
{
	return (TN_MAX_DOMS + cpu) * TN_NR_TIERS + tier;
}

static struct queue *queue(u32 id)
{
	return &queues[bounded(id, NR_QUEUES)];
}

/* Queue ids are DSQ ids. */
static int create_queues(u32 first)
{
	u32 tier;
	int err;

	bpf_for(tier, 0, TN_NR_TIERS) {
		err = scx_bpf_create_dsq(first + tier, -1);
		if (err)
			return err;
	}
	return 0;
}

static void leave_queue(struct task_ctx *tctx, u64 now)
{
	u32 id;

	if (!tctx->queue)
		return;
	/* Another CPU may be moving it to the late queue: whoever swaps the
	 * number out is the one who counts. */
	id = __sync_lock_test_and_set(&tctx->queue, 0);
	if (!id)
		return;
	__sync_fetch_and_sub(&queue(id - 1)->nr, 1);
	queue(id - 1)->served_at = now;
}

static void join_queue(struct task_ctx *tctx, u32 id, u64 now)
{
	struct queue *q = queue(id);

	if (!q->nr)
		q->served_at = now;
	__sync_fetch_and_add(&q->nr, 1);
	tctx->queue = id + 1;
}

static u64 head_key(u32 id)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(id);

	return p ? p->scx.dsq_vtime : ~0ULL;
}

static u64 tier_slice(u32 tier)
{
	return tier <= TN_INFERRED ? TN_SLICE_JOB : TN_SLICE_BACKGROUND;
}

/*
 * Jobs at the head that cannot make it any more step aside, a few at a time, so
 * that they do not drag those behind them past their deadlines too.
 */
static void sweep_hopeless(u32 id, u32 late_id, u64 now)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	int swept = 0;

	bpf_for_each(scx_dsq, p, id, 0) {
		tctx = task_ctx(p);
		if (!tctx || task_tier(tctx, now) != TN_LATE)
			break;
		if (__sync_val_compare_and_swap(&tctx->queue, id + 1, late_id + 1) != id + 1)
			break;
		if (!queue(late_id)->nr)
			queue(late_id)->served_at = now;
		__sync_fetch_and_add(&queue(late_id)->nr, 1);
		__sync_fetch_and_sub(&queue(id)->nr, 1);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, TN_SLICE_BACKGROUND);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tctx->deadline_at);
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, late_id, 0);
		this_stats()->hopeless++;
		if (++swept >= 8)
			break;
	}
}

/*
 * Has the queue waited its bound? The more wait in it, the more often it gets a
 * turn, so that each of them has one within TN_STARVE_BOUND.
 */
static bool queue_due(u32 id, u64 now, u32 nr_servers)
{
	struct queue *q = queue(id);
	u64 nr = q->nr, every = TN_SERVE_EVERY, waited;

	if (!nr)
		return false;
	waited = since(now, q->served_at);
	if (waited < 2 * TN_MSEC)
		return false;
	every = MIN(every, TN_STARVE_BOUND / 2 / nr);
	return waited * nr_servers >= every;
}

static bool take_due(u32 id, u64 now, u32 nr_servers)
{
	if (!queue_due(id, now, nr_servers))
		return false;
	/* Claim the turn first: one CPU is enough. */
	queue(id)->served_at = now;
	return scx_bpf_dsq_move_to_local(id, 0);
}

enum served {
	SERVED_NONE,
	SERVED_MOVED,
	SERVED_KEEP, /* the running task is the one to run */
};

/* Tasks of other domains that nobody there has time for. */
static bool steal(u32 dom, u32 tier)
{
	int i;

	if (nr_doms == 1)
		return false;
	bpf_for(i, 1, nr_doms) {
		u32 id = shared_queue((dom + i) % nr_doms, tier);

		if (queue(id)->nr && scx_bpf_dsq_move_to_local(id, 0)) {
			this_stats()->steals++;
			return true;
		}
	}
	return false;
}

/* Serve one tier on @cpu, whose running task has urgency @prev_urg if it wants
 * to go on running. */
static enum served serve_tier(s32 cpu, u32 dom, u32 tier, u64 prev_urg, u64 now)
{
	u32 shared = shared_queue(dom, tier), own = pinned_queue(cpu, tier);
	u64 shared_key = ~0ULL, own_key = ~0ULL;
	u64 nr_shared, nr_own;
	bool compete;

	if (urgency_tier(prev_urg) < tier)
		return SERVED_KEEP;

	if (tier == TN_DECLARED) {
		if (queue(shared)->nr)
			sweep_hopeless(shared, shared_queue(dom, TN_LATE), now);
		if (queue(own)->nr)
			sweep_hopeless(own, pinned_queue(cpu, TN_LATE), now);
	}
	nr_shared = queue(shared)->nr;
	nr_own = queue(own)->nr;

	compete = urgency_tier(prev_urg) == tier;
	if (nr_shared && (nr_own || compete))
		shared_key = head_key(shared);
	if (nr_own && (nr_shared || compete))
		own_key = head_key(own);
	if (compete && prev_urg <= urgency(tier, MIN(shared_key, own_key))) {
		/* The tier is being served, if not its queue. */
		queue(shared)->served_at = now;
		queue(own)->served_at = now;
		return SERVED_KEEP;
	}

	if (nr_own && own_key <= shared_key && scx_bpf_dsq_move_to_local(own, 0))
		return SERVED_MOVED;
	if (nr_shared && scx_bpf_dsq_move_to_local(shared, 0))
		return SERVED_MOVED;
	if (nr_own && own_key > shared_key && scx_bpf_dsq_move_to_local(own, 0))
		return SERVED_MOVED;
	if (compete)
		return SERVED_KEEP;
	return steal(dom, tier) ? SERVED_MOVED : SERVED_NONE;
}

#endif /* __TEMPONET_QUEUE_BPF_H */
