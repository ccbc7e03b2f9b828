/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs: released by a wake-up, completed by going to sleep, continued where
 * the constant-bandwidth server's wake-up rule says so, and cut by a used-up
 * budget where a task is behind and does not sleep at all.
 */
#ifndef __TEMPONET_JOB_BPF_H
#define __TEMPONET_JOB_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TN_MAX_OFFENDERS);
	__type(key, u32);
	__type(value, struct temponet_offender);
} offenders SEC(".maps");

/* Fair-share clock of the hogs, and how far it went in the last TN_AGING. */
static u64 vclock = 1ULL << 40;
static u64 vclock_step = 100 * TN_MSEC;
static u64 vclock_mark = 1ULL << 40;
static u64 vclock_mark_at;

static void advance_vclock(u64 vtime, u64 now)
{
	if (time_after(vtime, vclock))
		vclock = vtime;
	if (since(now, vclock_mark_at) >= TN_AGING) {
		vclock_mark_at = now;
		vclock_step = vclock - vclock_mark;
		vclock_mark = vclock;
	}
}

/* How far around the clock's hand a hog's virtual time counts: no credit for having
 * slept, and no debt of more than the hand goes in TN_AGING. */
static u64 hog_span(void)
{
	return MAX(vclock_step, TN_SLICE_BACKGROUND) + TN_SLICE_BACKGROUND;
}

static void place_hog(struct task_ctx *tctx)
{
	u64 first = vclock - TN_SLICE_BACKGROUND, last = first + hog_span();

	if (time_before(tctx->vtime, first))
		tctx->vtime = first;
	else if (time_after(tctx->vtime, last))
		tctx->vtime = last;
}

/*
 * Who is cut short (by a declared job, the agent, a real-time task, somebody who waited for
 * longer) waits on since before, until it has had a little: what it did so far would be all
 * for a second, or for a round of a crowd.
 */
static void owe_turn(struct task_ctx *tctx)
{
	if (!tctx->turn_left)
		tctx->turn_left = TN_SLICE_BOUND_CROWD;
}

static bool turn_owed(const struct task_ctx *tctx)
{
	return tctx->turn_left > TN_SLICE_BOUND_CROWD / 2;
}

/*
 * When it should be a hog's turn, in the time of the wall, within TN_AGING: the clock's
 * hand may go slower from one moment to the next, and who was placed by how fast it went
 * would see all that come later go first.
 */
static u64 hog_key(const struct task_ctx *tctx, u64 now)
{
	u64 span = hog_span(), behind = since(tctx->vtime, vclock - TN_SLICE_BACKGROUND);

	/* It keeps its place. */
	if (turn_owed(tctx))
		return tctx->waits_since;
	return now + MIN(behind, span) / (span >> 16) * (TN_AGING >> 16);
}

static u64 remaining(const struct task_ctx *tctx)
{
	u64 work = tctx->budget_ns;

	/* Declared runtimes are worst cases. What the task usually needs tells
	 * better whether it can still make it. */
	if (tctx->samples >= 2)
		work = MIN(work, tctx->burst_ns);
	return work > tctx->exec_ns ? work - tctx->exec_ns : 0;
}

/* What a job of this task costs: in overload the cheapest are worth most. */
static u64 job_cost(const struct task_ctx *tctx)
{
	return tctx->samples >= 2 ? MIN(tctx->runtime_ns, tctx->burst_ns) : tctx->runtime_ns;
}

#include "stuck.bpf.h"

static s64 slack(const struct task_ctx *tctx, u64 now)
{
	return (s64)(tctx->deadline_at - now - remaining(tctx));
}

/*
 * When it is too late for its job. Whom the agent keeps has a period more: those it
 * keeps fit together, so whoever falls behind a little catches up if he keeps his
 * place, and falls further behind if he loses it.
 */
static u64 hopeless_at(const struct task_ctx *tctx)
{
	return tctx->deadline_at + (tctx->kept ? tctx->period_ns : 0);
}

/* Where a task stands now, and by which time it is ordered there. */
static u32 task_tier(struct task_ctx *tctx, s32 cpu, u64 now)
{
	u32 said = TN_VERDICT_NONE;

	if (tctx->rcu && tctx->base != TN_DECLARED)
		return TN_INFERRED;
	if (tctx->base == TN_BACKGROUND)
		return TN_BACKGROUND;
	if (tctx->base == TN_DECLARED)
		said = verdict(tctx, now);
	/* That was when there was more to do. */
	if (said == TN_VERDICT_GIVE_UP && at_ease(cpu, now))
		said = TN_VERDICT_NONE;

	/*
	 * The budget of this period is used up and the next one's is being eaten
	 * ahead of time. For a declared task a little of that is a job that
	 * overran: it yields to all who are within their budgets, or, where the
	 * agent found room for it, to those who are due before its next period is.
	 * A whole period ahead is a hog that declared itself important.
	 */
	if (time_after(tctx->release_at, now + TN_CLOCK_SKEW)) {
		if (tctx->base == TN_INFERRED ||
		    time_after(tctx->release_at, now + tctx->period_ns))
			return TN_BACKGROUND;
		return said == TN_VERDICT_KEEP ? TN_DECLARED : TN_INFERRED;
	}

	/* An estimated deadline says that a job is hopeless only if the estimate
	 * is worth something. */
	if (tctx->base == TN_INFERRED && !steady(tctx))
		return tctx->demoted ? TN_BACKGROUND : TN_INFERRED;
	/* The agent sees further than this queue. But whom it keeps is not kept at all
	 * costs: where they do not fit either, our own rule goes on. */
	tctx->given_up = said == TN_VERDICT_GIVE_UP;
	tctx->kept = said == TN_VERDICT_KEEP;
	if (tctx->given_up)
		return TN_LATE;
	if (!overloaded(cpu, tctx->base == TN_DECLARED, now))
		return tctx->base;
	/* Once given up, a task is so until it is on time again. */
	if (time_before(hopeless_at(tctx), now + remaining(tctx)))
		tctx->dropped = true;
	return tctx->dropped ? TN_LATE : tctx->base;
}

/* Behind all costs there are. */
#define GIVEN_UP_LAST (1ULL << 50)

static u64 tier_key(const struct task_ctx *tctx, u32 tier, u64 now)
{
	/* A grace period waits for it, and a moment is all that it needs. */
	if (tier > TN_INFERRED && tctx->reader == READER_WAITS)
		return 0;
	if (tier == TN_BACKGROUND)
		return hog_key(tctx, now);
	/* Late tasks are brought back on time one after the other, the cheapest
	 * first: that is the most jobs on time for the work. */
	if (tier == TN_LATE)
		return job_cost(tctx) + tctx->tie + (tctx->given_up ? GIVEN_UP_LAST : 0);
	if (tier == TN_INFERRED && tctx->rcu)
		return rcu_key(tctx, now);
	/* A deadline many seconds away is no reason to wait for as long. */
	return MIN(tctx->deadline_at, tctx->release_at + TN_STARVE_BOUND / 2);
}

static u64 task_urgency(struct task_ctx *tctx, s32 cpu, u64 now)
{
	u32 tier = task_tier(tctx, cpu, now);

	return urgency(tier, tier_key(tctx, tier, now));
}

static void note_miss(struct task_struct *p, struct task_ctx *tctx, u64 late, u64 now)
{
	struct temponet_offender *row, fresh = {};
	u32 tid = p->pid;

	row = bpf_map_lookup_elem(&offenders, &tid);
	if (!row) {
		fresh.missed = tctx->missed;
		fresh.met = tctx->met;
		fresh.lateness_max_ns = late;
		fresh.last_miss_at = now;
		fresh.tgid = p->tgid;
		fresh.tier = tctx->job_class;
		__builtin_memcpy(fresh.comm, p->comm, sizeof(fresh.comm));
		bpf_map_update_elem(&offenders, &tid, &fresh, BPF_ANY);
		return;
	}
	row->missed = tctx->missed;
	row->met = tctx->met;
	row->last_miss_at = now;
	row->tier = tctx->job_class;
	if (late > row->lateness_max_ns)
		row->lateness_max_ns = late;
	__builtin_memcpy(row->comm, p->comm, sizeof(row->comm));
}

static void complete_job(struct task_struct *p, struct task_ctx *tctx, u64 end)
{
	struct temponet_class_stats *stats;
	u64 response, late;

	if (!tctx->open)
		return;
	tctx->open = false;
	stats = class_stats(tctx->job_class);
	response = since(end, tctx->release_at);
	late = since(end, tctx->deadline_at);
	stats->response_ns += response;
	if (response > stats->response_max_ns)
		stats->response_max_ns = response;
	if (!late) {
		stats->met++;
		tctx->met++;
		return;
	}
	stats->missed++;
	tctx->missed++;
	stats->lateness_ns += late;
	if (late > stats->lateness_max_ns)
		stats->lateness_max_ns = late;
	note_miss(p, tctx, late, end);
}

/* A job ended on this CPU: was it late? */
static void note_end(const struct task_ctx *tctx, u64 end)
{
	s32 cpu = bpf_get_smp_processor_id();

	if (!tctx->open || !time_after(end, tctx->deadline_at))
		return;
	note_late_end(dom_of(cpu), tctx->job_class == TN_DECLARED, end);
	note_late_end(cpu_lane(cpu), tctx->job_class == TN_DECLARED, end);
}

static void open_job(struct task_ctx *tctx)
{
	tctx->open = true;
	tctx->job++;
	tctx->job_class = tctx->base;
	class_stats(tctx->base)->released++;
}

static void release_job(struct task_ctx *tctx, u64 now)
{
	tctx->release_at = now;
	tctx->deadline_at = now + tctx->rel_deadline_ns;
	tctx->exec_ns = 0;
	tctx->budget_ns = tctx->runtime_ns;
	tctx->rolled = false;
	tctx->dropped = false;
	tctx->demoted = false;
	if (tctx->base != TN_BACKGROUND)
		open_job(tctx);
}

/*
 * The wake-up rule of the constant-bandwidth server: a task that blocked
 * half-way keeps its deadline unless what is left of its budget would then
 * exceed its declared share. Times are taken in units of 1024 ns so that the
 * products fit.
 *
 * A period after its last wake-up a task has come for its next job, even if it
 * overran the last one: what it ate ahead of time it ate below all declared
 * jobs, so they are not owed it back.
 */
static bool job_continues(const struct task_ctx *tctx, u64 now)
{
	u64 left, time;

	if (!tctx->open || !time_before(now, tctx->deadline_at) ||
	    since(now, tctx->woke_at) >= tctx->period_ns - tctx->period_ns / 16)
		return false;
	left = tctx->budget_ns > tctx->exec_ns ? tctx->budget_ns - tctx->exec_ns : 0;
	time = tctx->deadline_at - now;
	return (left >> 10) * (tctx->rel_deadline_ns >> 10) <=
	       (time >> 10) * (tctx->runtime_ns >> 10);
}

/* What an estimate says was eaten ahead is held against a task for TN_AGING at most:
 * its rhythm may be another by now. */
static void forget_debt(struct task_ctx *tctx, u64 now)
{
	u64 ahead = since(tctx->release_at, now);

	if (tctx->base != TN_INFERRED || ahead <= TN_AGING)
		return;
	tctx->release_at -= ahead - TN_AGING;
	tctx->deadline_at -= ahead - TN_AGING;
}

/* The budget is used up: this job ends at @end, its successor begins. */
static void roll_job(struct task_struct *p, struct task_ctx *tctx, u64 budget, u64 end)
{
	note_end(tctx, end);
	complete_job(p, tctx, end);
	this_stats()->rollovers++;
	tctx->release_at += tctx->period_ns;
	tctx->deadline_at += tctx->period_ns;
	forget_debt(tctx, end);
	tctx->exec_ns -= budget;
	tctx->budget_ns = tctx->runtime_ns;
	tctx->rolled = true;
	if (tctx->kept || slack(tctx, end) >= 0)
		tctx->dropped = false;
	open_job(tctx);
}

/*
 * A job may run over its budget by this part before that counts as the next
 * job: boundaries and clocks are never exact.
 */
#define GRACE_SHIFT 4

/* What it declared for @jobs, and the grace. */
static u64 declared_for(const struct task_ctx *tctx, u64 jobs)
{
	return jobs * (tctx->runtime_ns + (tctx->runtime_ns >> GRACE_SHIFT));
}

/*
 * Has it had more than its declared share since it woke up? A task that is behind works
 * through its jobs without sleeping, and where one ends we can only guess: what it
 * declared tells better than our count whether it is ahead of itself.
 */
static bool over_share(const struct task_ctx *tctx, u64 now)
{
	u64 jobs = since(now, tctx->woke_at) / MAX(tctx->period_ns, 1) + 1;

	return tctx->burst_exec_ns > declared_for(tctx, jobs) + tctx->leeway_ns;
}

/*
 * A task is charged for what it did not do, too: an interrupt, a host's theft, which
 * come in lumps. What it is forgiven it earns at the rate that it declared, so that
 * none gets more than twice that for long, and keeps for when it is needed.
 */
static void settle_leeway(struct task_ctx *tctx, u64 now)
{
	u64 period = MAX(tctx->period_ns, 1024), slept = since(now, tctx->woke_at);
	u64 jobs = MAX((slept + period / 2) / period, 1);
	u64 over = since(tctx->burst_exec_ns, declared_for(tctx, jobs));
	u64 earned = (tctx->runtime_ns >> 10) * MIN(slept, 8 * period) / (period >> 10);

	tctx->leeway_ns = MIN(tctx->leeway_ns + earned, MIN(period >> 3, TN_LEEWAY_MAX));
	tctx->leeway_ns -= MIN(over, tctx->leeway_ns);
}

static void wake_job(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool used_up, stuck = tctx->stuck, goes_on = goes_on_after_stuck(tctx, now);

	tctx->sleep = AWAKE;
	note_unstuck(tctx);
	if (goes_on)
		return;
	if (stuck)
		note_end(tctx, tctx->slept_at);
	used_up = tctx->exec_ns >= tctx->budget_ns;
	if (job_continues(tctx, now)) {
		/* It slept and came back before its next period with nothing left:
		 * the next job, but with the deadline that its share allows. */
		if (used_up) {
			settle_leeway(tctx, now);
			learn(tctx, now);
			roll_job(p, tctx, tctx->exec_ns, tctx->slept_at);
		}
		return;
	}
	complete_job(p, tctx, tctx->slept_at);
	settle_leeway(tctx, now);
	learn(tctx, now);
	refresh_params(p, tctx, now);
	release_job(tctx, now);
}

/*
 * Not a job after all: neither met nor missed. Among the hogs it begins with a turn
 * owed, or a stream of newcomers would stand before those who wait, and the clock
 * stand still.
 */
static void demote(struct task_ctx *tctx)
{
	u64 begin = vclock + TN_SLICE_BACKGROUND;

	if (time_before(tctx->vtime, begin))
		tctx->vtime = begin;
	tctx->demoted = true;
	tctx->open = false;
	this_stats()->demotions++;
}

static void settle_budget(struct task_struct *p, struct task_ctx *tctx)
{
	u64 now;
	int i;

	if (tctx->base == TN_BACKGROUND || tctx->demoted || tctx->exec_ns < tctx->budget_ns / 2)
		return;

	/* Without a rhythm there is no next job to go on with. */
	if (tctx->base == TN_INFERRED && !steady(tctx)) {
		if (tctx->exec_ns > tctx->budget_ns)
			demote(tctx);
		return;
	}

	now = scx_bpf_now();
	for (i = 0; i < 4; i++) {
		u64 budget = tctx->runtime_ns;

		/* Behind schedule it does not sleep between jobs, and its jobs are
		 * as long as they usually are, not as long as they may be. */
		if ((tctx->rolled || time_after(now, tctx->deadline_at)) &&
		    tctx->samples >= 2) {
			budget = MIN(budget, tctx->burst_ns);
			budget = MAX(budget, tctx->runtime_ns / 4);
		}
		if (tctx->exec_ns < budget + (tctx->runtime_ns >> GRACE_SHIFT))
			break;
		/* The next one is not due yet, and this one is within what was declared. */
		if (tctx->base == TN_DECLARED &&
		    time_before(now, tctx->release_at + tctx->period_ns) && !over_share(tctx, now))
			break;
		roll_job(p, tctx, budget, now - (tctx->exec_ns - budget));
	}
}

/*
 * Bring a running task's books up to date. The kernel's own clock of the task
 * is ahead of ours by what it ran since.
 */
static void account(struct task_struct *p, struct task_ctx *tctx)
{
	u64 total = p->se.sum_exec_runtime, ran = total - tctx->accounted_ns;

	tctx->accounted_ns = total;
	tctx->exec_ns += ran;
	tctx->burst_exec_ns += ran;
	tctx->awake_ns += ran;
	tctx->turn_left -= MIN(ran, tctx->turn_left);
	class_stats(tctx->run_tier)->run_ns += ran;
	/* What it runs like others does not count, or it would never have credit again. */
	if (tctx->cut_in)
		charge_agent(ran);
	if (tctx->run_tier == TN_BACKGROUND)
		tctx->vtime += ran * (100 * 1024) / (tctx->hog_weight ?: 100 * 1024);
	settle_budget(p, tctx);
}

#endif /* __TEMPONET_JOB_BPF_H */
