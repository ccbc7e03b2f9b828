/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Undeclared work with a rhythm. A periodic program sleeps until the next point of a grid: its
 * absolute timers are a period apart, to the microsecond, however long its jobs took. A program
 * that naps between its work has no grid; what it runs shifts its timers. So a grid tells the two
 * apart, and tells the period exactly.
 *
 * A task on a grid that gets less than it needs falls behind for good, where any other just takes
 * longer. So while all of them together, and the declared tasks, fit into the CPUs, tasks on a grid
 * come before the shares of other tasks of their own cgroup that weigh no more than they do. Their
 * cgroups' shares and weights hold all the same.
 *
 * A task that started behind never sleeps, and shows no grid: it looks like a hog. Hence the
 * audition: now and then a hog has its turns for some time in one piece. A periodic task catches up
 * and sleeps. A hog has had some of its share in advance.
 */
#ifndef __TEMPONET_RHYTHM_BPF_H
#define __TEMPONET_RHYTHM_BPF_H

#include "fair.bpf.h"
#include "group.bpf.h"
#include "load.bpf.h"
#include "state.bpf.h"

/* The part of the CPUs that declared tasks and tasks on a grid may fill together, and the most that
 * one task on a grid may need. */
#define GRID_FITS (LOAD_ONE / 20 * 19)
#define GRID_ONE (LOAD_ONE / 10 * 9)
/* Timers of one grid differ from its points by no more than this. */
#define GRID_TOLERANCE (2 * TN_USEC)
/* Periods that one timer may lie ahead of the last: the task was behind. */
#define GRID_SKIP_MAX 1024
/* A task that has set so few timers may be on a grid. */
#define GRID_TRIAL 3
/* A task that has not slept until a point of its grid for this long is no longer on it. */
#define GRID_FORGET (4000ULL * TN_MSEC)

/* What tasks on a grid need together, in units of LOAD_ONE. */
static u64 grid_load;

static void claim_grid(struct task_ctx *tctx, u64 claim)
{
	if (claim == tctx->grid_claim)
		return;
	__sync_fetch_and_add(&grid_load, claim - tctx->grid_claim);
	tctx->grid_claim = claim;
}

static void leave_grid(struct task_ctx *tctx)
{
	tctx->grid_ns = 0;
	tctx->grid_timers = 0;
	tctx->timer_at = 0;
	claim_grid(tctx, 0);
}

/* Is @step a whole number of periods of @grid? */
static bool on_grid_point(u64 step, u64 grid)
{
	u64 n, off;

	if (!grid)
		return false;
	n = (step + grid / 2) / grid;
	off = n * grid > step ? n * grid - step : step - n * grid;
	return n && n <= GRID_SKIP_MAX && off <= GRID_TOLERANCE;
}

/* The task will sleep until @at, a time that it chose by itself. */
static void note_timer(struct task_ctx *tctx, u64 at, u64 now)
{
	u64 last = tctx->timer_at, step = since(at, last);

	tctx->timer_at = at;
	tctx->timer_set_at = now;
	if (!last || step < TEMPONET_PERIOD_MIN_NS) {
		tctx->grid_timers = 1;
		return;
	}
	if (on_grid_point(step, tctx->grid_ns)) {
		if (tctx->grid_timers < 255)
			tctx->grid_timers++;
		return;
	}
	/* The first step may have been several periods long. A task that leaves its grid for one
	 * step needs two to be on another. */
	tctx->grid_timers = on_grid_point(tctx->grid_ns, step) ? GRID_TRIAL :
			    tctx->grid_ns ? 0 : 2;
	tctx->grid_ns = step;
	if (!tctx->grid_timers)
		claim_grid(tctx, 0);
}

/* Does the task sleep on a grid, as far as one can tell? */
static bool on_grid(const struct task_ctx *tctx)
{
	return tctx->grid_timers && (tctx->grid_ns || tctx->grid_timers == 1);
}

/* Is the grid beyond doubt? */
static bool grid_known(const struct task_ctx *tctx)
{
	return tctx->grid_ns && tctx->grid_timers >= GRID_TRIAL;
}

SEC("tp_btf/hrtimer_start")
int BPF_PROG(temponet_timer, struct hrtimer *timer, enum hrtimer_mode mode)
{
	struct task_struct *p = bpf_get_current_task_btf(), *sleeper = NULL;
	struct task_ctx *tctx, *leader;

	if (mode & (HRTIMER_MODE_REL | HRTIMER_MODE_PINNED | HRTIMER_MODE_SOFT))
		return 0;
	/* Is it the timer of a sleep, and that of the running task? What lies there in other
	 * timers is not a pointer to the task. */
	bpf_probe_read_kernel(&sleeper, sizeof(sleeper),
			      (void *)timer +
				      bpf_core_field_offset(struct hrtimer_sleeper, task));
	if (sleeper != p)
		return 0;
	tctx = task_ctx(p);
	if (!tctx || tctx->base == TN_DECLARED)
		return 0;
	note_timer(tctx, BPF_CORE_READ(timer, _softexpires), scx_bpf_now());
	if (grid_known(tctx)) {
		leader = task_ctx(p->group_leader);
		if (leader)
			leader->process_grid_at = tctx->timer_set_at;
	}
	return 0;
}

/* What the task needs, by its last bursts and the grid. To be called when it wakes up. */
static void update_grid(struct task_ctx *tctx, u64 now)
{
	u64 claim = 0;

	if (tctx->base == TN_DECLARED ||
	    (tctx->timer_at && since(now, tctx->timer_set_at) > GRID_FORGET)) {
		leave_grid(tctx);
		return;
	}
	if (grid_known(tctx) && tctx->samples)
		claim = (tctx->burst_ns << 20) / MAX(tctx->grid_ns, 1);
	claim_grid(tctx, claim <= GRID_ONE ? claim : 0);
}

/* May the task run beyond its share, for the sake of its rhythm? */
static bool keeps_rhythm(const struct task_ctx *tctx, u64 now)
{
	struct group *grp = group(tctx->group);

	if (!on_grid(tctx) || since(now, tctx->timer_set_at) > GRID_FORGET ||
	    (grid_known(tctx) && tctx->samples >= COST_SAMPLES && !tctx->grid_claim))
		return false;
	if (declared_load + grid_load > nr_online * GRID_FITS)
		return false;
	/* Those that share with it weigh no more, on average. */
	return grp->runnable <= (tctx->weight + tctx->weight / 8) * MAX(grp->nr_runnable, 1);
}

/* The range of auditions of a task none of whose process's threads is known to be on a grid. No
 * audition of such a task is longer than its share of TN_AGING, so that what it has in advance can
 * be taken from its next turns. */
#define AUDITION_MIN (10 * TN_MSEC)
#define AUDITION_MAX (40 * TN_MSEC)
/* The same where another thread of the process is on a grid. The backlog of a task that has been
 * behind for a time t is worked off in 2 t, if it needs less than four fifths of what is left. */
#define AUDITION_SIBLING_MIN (20 * TN_MSEC)
#define AUDITION_SIBLING_MAX (1000 * TN_MSEC)
/* After an audition of a task that has been awake for a time t, the next is at this times t. */
#define AUDITION_AGAIN 4

/* The task that has an audition, and when the audition is over at the latest. */
static u32 audition_pid;
static u64 audition_until;

static void end_audition(struct task_ctx *tctx)
{
	if (!tctx->audition_left)
		return;
	tctx->audition_left = 0;
	if (audition_pid == tctx->pid)
		audition_until = 0;
}

/* Is another thread of the process on a grid? */
static bool sibling_on_grid(struct task_struct *p, u64 now)
{
	struct task_ctx *leader = task_ctx(p->group_leader);

	return leader && leader->process_grid_at &&
	       since(now, leader->process_grid_at) <= GRID_FORGET;
}

/* A hog begins a turn. Is it time to find out whether it is one? */
static void begin_audition(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 now)
{
	u64 awake = since(now, tctx->woke_at), len;
	bool sibling;

	if (tctx->base != TN_INFERRED || time_before(now, audition_until) ||
	    !others_hog(tctx, cpu) || (tctx->slept_at && !tctx->timer_at))
		return;
	sibling = sibling_on_grid(p, now);
	if (sibling == tctx->audition_sibling && time_before(now, tctx->audition_at))
		return;
	if (sibling)
		len = MIN(MAX(2 * awake, AUDITION_SIBLING_MIN), AUDITION_SIBLING_MAX);
	else
		len = MIN(MIN(MAX(awake, AUDITION_MIN), AUDITION_MAX), share_of_aging(tctx));
	if (len < AUDITION_MIN)
		return;
	tctx->audition_left = len;
	tctx->audition_sibling = sibling;
	tctx->audition_at = now + (AUDITION_AGAIN - 1) * MAX(awake, AUDITION_MIN);
	audition_pid = tctx->pid;
	audition_until = now + 2 * len;
}

#endif /* __TEMPONET_RHYTHM_BPF_H */
