/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair shares among all who declare nothing. Every group (group.bpf.h) has a clock of virtual time
 * for its children. What a task runs counts against it and against each of its cgroups, by weight,
 * in whatever tier it ran. A child that is ahead of its clock has had more than its share. Tasks
 * within their share run first, as inferred jobs; the others are background, ordered by when their
 * share allows their next turn.
 *
 * A clock is at the virtual time of the child that was served last in that order (start-time fair
 * queueing). Where nobody is background there is nothing to share: the clock follows whoever runs.
 */
#ifndef __TEMPONET_FAIR_BPF_H
#define __TEMPONET_FAIR_BPF_H

#include "group.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"

/* In virtual time, which is CPU time at nice 0: what a task that slept may be behind its clock, and
 * what a task or group may be ahead of it within its share. */
#define SLEEP_CREDIT (TN_MSEC / 4)
#define SHARE_GRANT (TN_MSEC / 2)
/* The same for the groups of a task that is itself behind its group's clock. What it runs counts
 * against the group all the same, and the other tasks of the group pay for it. */
#define LIGHT_GRANT (20 * TN_MSEC)

/* Background tasks of each domain that wait or run. */
static u32 nr_hogs[TN_MAX_DOMS];

static void count_hog(struct task_ctx *tctx, u32 dom)
{
	if (tctx->hog_dom == dom + 1)
		return;
	if (tctx->hog_dom)
		__sync_fetch_and_sub(&nr_hogs[bounded(tctx->hog_dom - 1, TN_MAX_DOMS)], 1);
	tctx->hog_dom = dom + 1;
	__sync_fetch_and_add(&nr_hogs[bounded(dom, TN_MAX_DOMS)], 1);
}

static void uncount_hog(struct task_ctx *tctx)
{
	if (!tctx->hog_dom)
		return;
	__sync_fetch_and_sub(&nr_hogs[bounded(tctx->hog_dom - 1, TN_MAX_DOMS)], 1);
	tctx->hog_dom = 0;
}

/* Does a background task other than this one compete on @cpu's domain? */
static bool others_hog(const struct task_ctx *tctx, s32 cpu)
{
	return nr_hogs[dom_of(cpu)] > !!tctx->hog_dom;
}

/* How far something is ahead of its clock, in virtual time. */
static u64 ahead(u64 vtime, u64 clock)
{
	return (s64)(vtime - clock) > 0 ? vtime - clock : 0;
}

static void advance(u64 *clock, u64 vtime)
{
	if ((s64)(vtime - *clock) > 0)
		*clock = vtime;
}

static void limit_credit(u64 *vtime, u64 clock)
{
	if ((s64)(clock - SLEEP_CREDIT - *vtime) > 0)
		*vtime = clock - SLEEP_CREDIT;
}

/* The task becomes runnable: sleep earns a little credit, no more. */
static void join_shares(const struct task_struct *p, struct task_ctx *tctx)
{
	u32 id = tctx->group;
	int level;

	if (tctx->counted_weight)
		return;
	limit_credit(&tctx->vtime, group(id)->clock);
	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id);

		if (id == GROUP_ROOT || grp->nr_runnable)
			break;
		limit_credit(&grp->vtime, group(grp->parent)->clock);
		id = grp->parent;
	}
	count_runnable(p, tctx);
}

static void leave_shares(struct task_ctx *tctx)
{
	uncount_hog(tctx);
	count_idle(tctx);
}

/* The task waits or runs in @tier. Declared jobs do not share. */
static void note_tier(const struct task_struct *p, struct task_ctx *tctx, s32 cpu, u32 tier)
{
	if (tier == TN_BACKGROUND)
		count_hog(tctx, dom_of(cpu));
	else
		uncount_hog(tctx);
	if (tctx->base != TN_DECLARED || tier == TN_BACKGROUND)
		join_shares(p, tctx);
	else
		count_idle(tctx);
}

/* Charges the task and its cgroups for @ran. With @follow, or where a child is the only runnable
 * one, the clocks follow. */
__weak int charge_groups(u32 id, u64 ran, bool follow)
{
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id), *up;
		u64 vtime;

		if (id == GROUP_ROOT)
			break;
		up = group(grp->parent);
		vtime = __sync_fetch_and_add(&grp->vtime,
					     ran * WEIGHT_ONE / MAX(grp->weight, 1));
		if (follow || up->nr_runnable <= 1)
			advance(&up->clock, vtime);
		id = grp->parent;
	}
	return 0;
}

static void charge_shares(const struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 ran)
{
	bool follow = !nr_hogs[dom_of(cpu)];

	tctx->weight = task_weight(p);
	tctx->vtime += ran * WEIGHT_ONE / tctx->weight;
	if (follow || group(tctx->group)->nr_runnable <= 1)
		advance(&group(tctx->group)->clock, tctx->vtime);
	charge_groups(tctx->group, ran, follow);
}

/* How the root's clock runs: measured over windows of this length. A window that is longer by far
 * had no hogs. */
#define SPEED_WINDOW (100 * TN_MSEC)
#define SPEED_WINDOW_MAX (400 * TN_MSEC)

static u64 speed_mark; /* the root's clock when the window began */
static u64 speed_mark_at;

/*
 * Measures how long the root's children take for their shares. By their weights and the number of
 * CPUs it would be less where declared jobs take a part, or where all hogs are bound to one CPU of
 * many. Then all would be overdue, and the order in which they are due would say nothing.
 */
static void measure_speed(u64 now)
{
	struct group *root = group(GROUP_ROOT);
	u64 window = since(now, speed_mark_at), went = root->clock - speed_mark, stretch;

	if (window < SPEED_WINDOW)
		return;
	speed_mark_at = now;
	speed_mark = root->clock;
	stretch = least_stretch;
	if (window <= SPEED_WINDOW_MAX && went)
		stretch = window * WEIGHT_ONE / went * WEIGHT_ONE / MAX(root->runnable, 1);
	stretch = MIN(MAX(stretch, least_stretch), (u64)WEIGHT_ONE * WEIGHT_ONE);
	root->stretch = (root->stretch + stretch) / 2;
}

/* A background task is served in its order: the clocks come up to it. */
__weak int advance_clocks(u32 id, u64 vtime)
{
	int level;

	measure_speed(scx_bpf_now());
	bpf_for(level, 0, GROUP_LEVELS + 1) {
		struct group *grp = group(id);

		advance(&grp->clock, vtime);
		if (id == GROUP_ROOT)
			break;
		vtime = grp->vtime;
		id = grp->parent;
	}
	return 0;
}

/* Is one of the task's cgroups ahead of its share? */
__weak int groups_beyond_share(u32 id, u64 grant)
{
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id);

		if (id == GROUP_ROOT)
			break;
		if (ahead(grp->vtime, group(grp->parent)->clock) > grant)
			return true;
		id = grp->parent;
	}
	return false;
}

/* What the next burst will cost a task of less weight than nice 0 has beyond what it would cost at
 * nice 0, for up to a millisecond of it. Such a task stands before others of its group only for
 * what is short at its weight. */
static u64 light_burst(const struct task_ctx *tctx)
{
	u64 burst = tctx->samples ? MIN(tctx->burst_ns, TN_MSEC) : TN_MSEC;

	if (tctx->weight >= WEIGHT_ONE || group(tctx->group)->nr_runnable <= 1)
		return 0;
	return burst * WEIGHT_ONE / MAX(tctx->weight, 1) - burst;
}

/* Has the task, or one of its cgroups, had more than its share, while others wait for theirs? Of a
 * task that @keeps_rhythm only the cgroups are asked. */
static bool beyond_share(const struct task_ctx *tctx, s32 cpu, bool keeps_rhythm)
{
	u64 own = ahead(tctx->vtime, group(tctx->group)->clock) + light_burst(tctx);

	if (!others_hog(tctx, cpu))
		return false;
	if (!keeps_rhythm && own > SHARE_GRANT)
		return true;
	return groups_beyond_share(tctx->group, own ? SHARE_GRANT : LIGHT_GRANT);
}

/* So that products fit into 64 bits: microseconds of debt, weights, and their product. */
#define LAG_MAX (1ULL << 24)
#define RUNNABLE_MAX (1ULL << 30)
#define SLOWER_MAX (1ULL << 36)

/*
 * The time after which something that is @lag ahead of the clock of @grp is due, at its share. No
 * more than TN_AGING, and the debt beyond that is forgiven: what took long under another load says
 * nothing about this one.
 */
static u64 due_in(const struct group *grp, u64 *vtime)
{
	u64 lag = MIN(ahead(*vtime, grp->clock) / TN_USEC, LAG_MAX);
	u64 slower = MAX(MIN(grp->runnable, RUNNABLE_MAX) * grp->stretch / WEIGHT_ONE, 1);
	u64 wait = lag * MIN(slower, SLOWER_MAX) / WEIGHT_ONE * TN_USEC;

	if (wait <= TN_AGING)
		return wait;
	*vtime = grp->clock + (u64)TN_AGING * WEIGHT_ONE / slower;
	return TN_AGING;
}

/* The time after which the share of each of the task's cgroups allows it a turn. */
__weak u64 groups_due_in(u32 id)
{
	u64 wait = 0;
	int level;

	bpf_for(level, 0, GROUP_LEVELS) {
		struct group *grp = group(id);

		if (id == GROUP_ROOT)
			break;
		update_stretch(grp);
		wait = MAX(wait, due_in(group(grp->parent), &grp->vtime));
		id = grp->parent;
	}
	return wait;
}

/*
 * A turn may be cut short by a declared job, the agent, a real-time task, or a task that has waited
 * longer. A task that has not had half a millisecond by then keeps its waiting time, and a hog its
 * place. Otherwise the little that it ran would be all it gets for a second, or for a round of a
 * crowd: a nice-19 task beside twenty hogs of nice -20 waited for up to 8.6 s, and waits for 2.3 s
 * with this rule (docs/measurements/scheduler.md).
 */
static void grant_turn(struct task_ctx *tctx)
{
	if (!tctx->turn_left)
		tctx->turn_left = TN_SLICE_BOUND_CROWD;
}

/* Was the task's last turn cut short in its first half? */
static bool turn_unfinished(const struct task_ctx *tctx)
{
	return tctx->turn_left > TN_SLICE_BOUND_CROWD / 2;
}

/* The task joins a queue. */
static void begin_wait(struct task_ctx *tctx, u64 now)
{
	tctx->queued_at = now;
	if (turn_unfinished(tctx))
		return;
	tctx->turn_left = 0;
	tctx->waits_since = now;
}

/*
 * The key of a hog: the wall-clock time at which it should have its turn, within TN_AGING. The key
 * is not virtual time itself, because the clock may slow down from one moment to the next. A hog
 * that was placed far ahead while it was fast would then see all later ones go first: of 2,000 hogs
 * that wake up together, one waited for 7 s (docs/measurements/scheduler.md).
 */
static u64 hog_key(struct task_ctx *tctx, u64 now)
{
	u64 wait;

	/* An audition is in one piece. */
	if (tctx->audition_left)
		return 0;
	/* A hog whose turn was cut short keeps its place. */
	if (turn_unfinished(tctx))
		return tctx->waits_since;
	wait = groups_due_in(tctx->group);
	return now + MAX(wait, due_in(group(tctx->group), &tctx->vtime));
}

/* What the task's share comes to in TN_AGING. */
static u64 share_of_aging(const struct task_ctx *tctx)
{
	struct group *grp = group(tctx->group);
	u64 slower = MIN(grp->runnable, RUNNABLE_MAX) * grp->stretch / MAX(tctx->weight, 1);

	return (u64)TN_AGING * WEIGHT_ONE / MAX(slower, 1);
}

/* The slice of a hog: no more than its share of TN_AGING. Where many wait, slices are so short that
 * a round takes TN_AGING. No slice is shorter than TN_SLICE_BOUND_CROWD. */
static u64 hog_slice(const struct task_ctx *tctx, s32 cpu)
{
	u64 slice = MIN(share_of_aging(tctx), TN_AGING / (waits_per_cpu(cpu, dom_of(cpu)) + 1));

	if (tctx->audition_left)
		return tctx->audition_left;

	return MAX(MIN(slice, TN_SLICE_BACKGROUND), TN_SLICE_BOUND_CROWD);
}

#endif /* __TEMPONET_FAIR_BPF_H */
