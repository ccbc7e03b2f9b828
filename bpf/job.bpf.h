/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs. A wake-up releases a job and going to sleep completes it. The wake-up rule of the
 * constant-bandwidth server tells a continued job from a new one. A task that is behind does not
 * sleep between jobs; its job ends where the budget is used up.
 */
#ifndef __TEMPONET_JOB_BPF_H
#define __TEMPONET_JOB_BPF_H

#include "agent.bpf.h"
#include "budget.bpf.h"
#include "fair.bpf.h"
#include "lend.bpf.h"
#include "params.bpf.h"
#include "pressure.bpf.h"
#include "quota.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"
#include "work.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TN_MAX_OFFENDERS);
	__type(key, u32);
	__type(value, struct temponet_offender);
} offenders SEC(".maps");

/* Enters a missed deadline into the table of worst offenders. */
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

/* Counts the open job, if there is one, as met or missed at @end. */
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

/* A job ended on this CPU. A late one is a sign of overload (pressure.bpf.h). */
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
 * The wake-up rule of the constant-bandwidth server: a task that blocked half-way keeps its
 * deadline, unless the rest of its budget would exceed its declared share until then.
 *
 * A task that wakes up a period after its last wake-up has come for its next job, even if it
 * overran the last one. It ran the excess throttled, below declared jobs, so it owes them nothing.
 */
static bool job_continues(const struct task_ctx *tctx, u64 now)
{
	u64 left, time;

	if (!tctx->open || !time_before(now, tctx->deadline_at) ||
	    since(now, tctx->woke_at) >= tctx->period_ns - tctx->period_ns / RELEASE_JITTER_DIV)
		return false;
	left = tctx->budget_ns > tctx->exec_ns ? tctx->budget_ns - tctx->exec_ns : 0;
	time = tctx->deadline_at - now;
	return (left >> COARSE_SHIFT) * (tctx->rel_deadline_ns >> COARSE_SHIFT) <=
	       (time >> COARSE_SHIFT) * (tctx->runtime_ns >> COARSE_SHIFT);
}

/* A task with estimated parameters is throttled for TN_AGING at most: its rhythm may have changed
 * since the estimate. */
static void cap_throttling(struct task_ctx *tctx, u64 now)
{
	u64 ahead = since(tctx->release_at, now);

	if (tctx->base != TN_INFERRED || ahead <= TN_AGING)
		return;
	tctx->release_at -= ahead - TN_AGING;
	tctx->deadline_at -= ahead - TN_AGING;
}

/* Ends the job at @end, where @budget was used up. Its successor is released one period later. */
static void roll_job(struct task_struct *p, struct task_ctx *tctx, u64 budget, u64 end)
{
	note_end(tctx, end);
	complete_job(p, tctx, end);
	this_stats()->rollovers++;
	tctx->release_at += tctx->period_ns;
	tctx->deadline_at += tctx->period_ns;
	cap_throttling(tctx, end);
	tctx->exec_ns -= budget;
	tctx->budget_ns = tctx->runtime_ns;
	tctx->rolled = true;
	if (tctx->kept || slack(tctx, end) >= 0)
		tctx->dropped = false;
	open_job(tctx);
}

static void wake_job(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool used_up, stuck = tctx->stuck, goes_on = resumes_after_stuck(tctx, now);

	tctx->sleep = AWAKE;
	note_unstuck(tctx);
	end_loan(tctx);
	if (goes_on)
		return;
	if (stuck)
		note_end(tctx, tctx->slept_at);
	used_up = tctx->exec_ns >= tctx->budget_ns;
	if (job_continues(tctx, now)) {
		/* The task woke up before its next period with its budget used up. This is its
		 * next job, released where its share allows: a period after the last one. */
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
	update_grid(tctx, now);
	refresh_params(p, tctx, now);
	release_job(tctx, now);
}

/* Makes an inferred task a hog until its next job. The current job counts as neither met nor
 * missed. */
static void demote(struct task_ctx *tctx)
{
	tctx->demoted = true;
	tctx->open = false;
	this_stats()->demotions++;
}

/* The budget of a job that is behind schedule is never less than this part of the task's runtime,
 * however short its jobs were so far. The size is a choice, not a measured one. */
#define BEHIND_BUDGET_DIV 4
/* How many job ends one call finds at most. The next call finds the rest. */
#define ROLL_MAX 4

/* Ends the current job if its budget is used up. */
static void settle_budget(struct task_struct *p, struct task_ctx *tctx)
{
	u64 now;
	int i;

	if (tctx->base == TN_BACKGROUND || tctx->demoted || tctx->exec_ns < tctx->budget_ns / 2)
		return;

	/* A task without a steady rhythm has no period, so no next job can follow this one. */
	if (tctx->base == TN_INFERRED && !steady(tctx)) {
		if (tctx->exec_ns > tctx->budget_ns)
			demote(tctx);
		return;
	}

	now = scx_bpf_now();
	for (i = 0; i < ROLL_MAX; i++) {
		u64 budget = tctx->runtime_ns;

		/* A task that is behind schedule does not sleep between its jobs. They are as long
		 * as they usually are, not as long as declared: that is the worst case. */
		if ((tctx->rolled || time_after(now, tctx->deadline_at)) &&
		    tctx->samples >= COST_SAMPLES) {
			budget = MIN(budget, tctx->burst_ns);
			budget = MAX(budget, tctx->runtime_ns / BEHIND_BUDGET_DIV);
		}
		if (tctx->exec_ns < budget + (tctx->runtime_ns >> GRACE_SHIFT))
			break;
		/* The next job is not released yet, and the task is within its declared share. */
		if (tctx->base == TN_DECLARED &&
		    time_before(now, tctx->release_at + tctx->period_ns) && !over_share(tctx, now))
			break;
		roll_job(p, tctx, budget, now - (tctx->exec_ns - budget));
	}
}

/* Brings a running task's books up to date, from the kernel's count of its CPU time. */
__weak int account(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	u64 total = p->se.sum_exec_runtime, ran = total - tctx->accounted_ns;

	tctx->accounted_ns = total;
	tctx->exec_ns += tctx->base == TN_DECLARED ? work_done(tctx->cpu, ran) : ran;
	charge_loan(tctx, ran);
	tctx->burst_exec_ns += ran;
	tctx->awake_ns += ran;
	tctx->turn_left -= MIN(ran, tctx->turn_left);
	class_stats(tctx->run_tier)->run_ns += ran;
	if (tctx->audition_left) {
		tctx->audition_left -= MIN(ran, tctx->audition_left);
		if (!tctx->audition_left)
			tctx->turn_left = 0;
	}
	/* The agent pays only for what it runs past the queues. If it paid for all, it might never
	 * have credit again. */
	if (tctx->bypass_queue)
		charge_agent(ran);
	if (tctx->group != GROUP_ROOT)
		charge_quotas(tctx->group, ran, scx_bpf_now());
	/* Declared jobs come before all shares. */
	if (tctx->base != TN_DECLARED || tctx->run_tier == TN_BACKGROUND)
		charge_shares(p, tctx, tctx->cpu, ran);
	settle_budget(p, tctx);
	return 0;
}

#endif /* __TEMPONET_JOB_BPF_H */
