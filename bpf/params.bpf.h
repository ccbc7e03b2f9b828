/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task's parameters (runtime, relative deadline, period) and their source: its hint, else the
 * first rule that matches, else an estimate from its own past. Everything else goes by these
 * three, wherever they come from.
 */
#ifndef __TEMPONET_PARAMS_BPF_H
#define __TEMPONET_PARAMS_BPF_H

#include "load.bpf.h"
#include "rhythm.bpf.h"
#include "state.bpf.h"
#include "work.bpf.h"

/* Estimates. The sizes of these constants are choices; none of them has a measurement on record. */

/* A mean of up to this many samples is a plain one. From there on each new sample has a gain of
 * one over it. */
#define EWMA_WINDOW 8
/* The first sample's deviation is unknown, and taken to be this part of it. */
#define FIRST_DEV_DIV 2
/* A rhythm is steady if its intervals deviate by less than this part of their mean. */
#define STEADY_DEV_DIV 4
/* While there are few samples, one that differs from their mean by this factor starts the estimate
 * anew: the earlier ones were of the task's start. */
#define START_OUTLIER 4
/* The count of samples stops here, long after it matters, and so cannot wrap. */
#define SAMPLES_MAX 1000000
/* An estimated budget is the mean plus this many mean deviations, and no less than the minimum. */
#define BUDGET_DEVS 4
#define BUDGET_MIN (1 * TN_MSEC)
/* The estimated deadline is no later than this many times the usual burst after the release. */
#define LATENCY_BURSTS 32
/* p->scx.weight at nice 0. */
#define NICE_0_WEIGHT 100
/* How many levels of cgroups below the root a rule is compared with. */
#define CGROUP_LEVELS 16

/* The map is pinned by userspace. A program that may write it may write any value, so each is
 * checked again here. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct temponet_hint);
} task_hints SEC(".maps");

/* Counts the hints that were set and cleared. Userspace adds one after each. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} hint_changes SEC(".maps");

/* Has no hint been set or cleared since the task's was looked up? */
static bool hints_seen(struct task_ctx *tctx)
{
	u32 key = 0, *changes = bpf_map_lookup_elem(&hint_changes, &key), now;

	if (!changes)
		return true;
	now = *changes;
	if (now == tctx->hint_changes)
		return true;
	tctx->hint_changes = now;
	return false;
}

static bool hint_valid(const struct temponet_hint *hint)
{
	return hint->version == TEMPONET_HINT_VERSION &&
	       hint->period_ns >= TEMPONET_PERIOD_MIN_NS &&
	       hint->period_ns <= TEMPONET_PERIOD_MAX_NS &&
	       hint->deadline_ns <= hint->period_ns &&
	       hint->runtime_ns >= TEMPONET_RUNTIME_MIN_NS &&
	       hint->runtime_ns <= hint->deadline_ns &&
	       hint->criticality <= TEMPONET_CRITICALITY_MAX;
}

static void declare(const struct task_struct *p, struct task_ctx *tctx,
		    const struct temponet_hint *hint)
{
	/* What the task did before this declaration says nothing about its jobs under it. */
	if (tctx->base != TN_DECLARED || tctx->declared_ns != hint->runtime_ns ||
	    tctx->period_ns != hint->period_ns)
		tctx->samples = 0;
	tctx->base = TN_DECLARED;
	tctx->declared_ns = hint->runtime_ns;
	tctx->runtime_ns = read_runtime(hint->runtime_ns, hint->deadline_ns);
	tctx->rel_deadline_ns = hint->deadline_ns;
	tctx->period_ns = hint->period_ns;
	tctx->criticality = hint->criticality;
	claim_load(p, tctx, true);
}

/* Rules are matched in the unified hierarchy, whether or not it has the cpu controller. */
static struct cgroup *unified_cgroup(struct task_struct *p)
{
	return BPF_CORE_READ(p, cgroups, dfl_cgrp);
}

/* Does rule @i name @cgrp or one of the cgroups above it? */
static bool cgroup_matches(struct cgroup *cgrp, u32 i)
{
	void *ancestors = (void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors);
	int level, depth = BPF_CORE_READ(cgrp, level);

	bpf_for(level, 1, CGROUP_LEVELS + 1) {
		u64 name[TN_CGROUP_LEN / 8] = {};
		struct cgroup *up = NULL;
		int w, differs = 0;

		if (level > depth)
			break;
		bpf_probe_read_kernel(&up, sizeof(up), ancestors + level * sizeof(up));
		if (!up)
			break;
		bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(up, kn, name));
		for (w = 0; w < TN_CGROUP_LEN / 8; w++)
			differs |= !!((name[w] ^ rules[i].cgroup[w]) & rules[i].cgroup_mask[w]);
		if (!differs)
			return true;
	}
	return false;
}

/* Not a valid user id: nobody's. */
#define NO_USER (~0U)

/*
 * The user whose ids the task has, all four of them. Whoever lends or borrows an id, as a set-uid
 * program does, is nobody here: a rule for a user is not for who can become them in part.
 */
static u32 user_of(struct task_struct *p)
{
	const struct cred *cred = BPF_CORE_READ(p, real_cred);
	u32 uid = BPF_CORE_READ(cred, uid.val);

	if (BPF_CORE_READ(cred, euid.val) != uid || BPF_CORE_READ(cred, suid.val) != uid ||
	    BPF_CORE_READ(cred, fsuid.val) != uid)
		return NO_USER;
	return uid;
}

/* Rules are matched again only when the task's name, cgroup or user has changed. */
static void match_rules(struct task_struct *p, struct task_ctx *tctx)
{
	struct cgroup *cgrp;
	u64 comm[2];
	u32 user;
	int i;

	if (!nr_rules)
		return;
	cgrp = unified_cgroup(p);
	user = user_of(p);
	__builtin_memcpy(comm, p->comm, sizeof(comm));
	if (comm[0] == tctx->comm[0] && comm[1] == tctx->comm[1] &&
	    (u64)cgrp == tctx->matched_cgroup && user == tctx->matched_user)
		return;
	tctx->matched_cgroup = (u64)cgrp;
	tctx->matched_user = user;
	tctx->comm[0] = comm[0];
	tctx->comm[1] = comm[1];
	tctx->by_rule = false;
	tctx->rule_background = false;

	bpf_for(i, 0, nr_rules) {
		if (i >= TN_MAX_RULES)
			break;
		if (((comm[0] ^ rules[i].comm[0]) & rules[i].comm_mask[0]) |
		    ((comm[1] ^ rules[i].comm[1]) & rules[i].comm_mask[1]))
			continue;
		if (rules[i].has_user && rules[i].uid != user)
			continue;
		if (rules[i].has_cgroup && !cgroup_matches(cgrp, i))
			continue;
		tctx->by_rule = true;
		tctx->rule_background = rules[i].background;
		tctx->rule_hint.runtime_ns = rules[i].hint.runtime_ns;
		tctx->rule_hint.deadline_ns = rules[i].hint.deadline_ns;
		tctx->rule_hint.period_ns = rules[i].hint.period_ns;
		tctx->rule_hint.criticality = rules[i].hint.criticality;
		tctx->rule_hint.version = rules[i].hint.version;
		break;
	}
}

/* Adds @sample, the @window-th or later one, to a mean and a mean deviation. */
static void ewma(u64 *mean, u64 *dev, u64 sample, s64 window)
{
	s64 diff = (s64)(sample - *mean);
	s64 off = (diff < 0 ? -diff : diff) - (s64)*dev;

	*mean += diff / window;
	*dev += off / window;
}

/* The period of an undeclared task: that of its timers, else its usual interval. */
static u64 rhythm(const struct task_ctx *tctx)
{
	return grid_known(tctx) ? tctx->grid_ns : tctx->interval_ns;
}

/* Does the task wake up at about the same interval every time? */
static bool steady(const struct task_ctx *tctx)
{
	if (grid_known(tctx) && tctx->samples >= COST_SAMPLES)
		return true;
	return tctx->samples >= RHYTHM_SAMPLES &&
	       tctx->interval_dev_ns < tctx->interval_ns / STEADY_DEV_DIV;
}

/*
 * Learns from one more wake-up interval and burst. A task that was behind did not sleep between
 * its jobs. So where the period is declared, or the rhythm was steady before, an interval of about
 * n periods counts as n jobs, not as a slower task.
 */
static void learn(struct task_ctx *tctx, u64 now)
{
	u64 interval = since(now, tctx->woke_at);
	u64 burst = tctx->burst_exec_ns;

	tctx->burst_exec_ns = 0;
	if (!tctx->woke_at || !burst)
		goto out;
	/* Many tasks begin with a long sleep that has nothing to do with their rhythm. */
	if (tctx->samples < RHYTHM_SAMPLES && interval < tctx->interval_ns / START_OUTLIER)
		tctx->samples = 0;
	/* The short bursts of a declared task that starts up are not its jobs. */
	if (tctx->samples < RHYTHM_SAMPLES && tctx->base == TN_DECLARED &&
	    burst / START_OUTLIER > tctx->burst_ns)
		tctx->samples = 0;
	if (!tctx->samples) {
		tctx->interval_ns = interval;
		tctx->interval_dev_ns = interval / FIRST_DEV_DIV;
		tctx->burst_ns = burst;
		tctx->burst_dev_ns = burst / FIRST_DEV_DIV;
	} else {
		bool declared = tctx->base == TN_DECLARED;
		u64 period = declared ? tctx->period_ns : rhythm(tctx);
		u64 window = MIN(tctx->samples + 1, EWMA_WINDOW);

		if (period && interval > period + period / 2 && (declared || steady(tctx))) {
			u64 n = (interval + period / 2) / period;

			interval /= n;
			burst /= n;
		}
		/* A declared runtime says what to expect, so the first deviation is not guessed. */
		if (declared && tctx->samples == 1)
			tctx->burst_dev_ns = 0;
		ewma(&tctx->interval_ns, &tctx->interval_dev_ns, interval, window);
		ewma(&tctx->burst_ns, &tctx->burst_dev_ns, burst, window);
	}
	if (tctx->samples < SAMPLES_MAX)
		tctx->samples++;
	if (tctx->base == TN_DECLARED && tctx->samples >= COST_SAMPLES)
		note_factor(tctx->pid, work_done(tctx->cpu, tctx->burst_ns), tctx->declared_ns,
			    now);
out:
	tctx->woke_at = now;
}

/* Takes the task's rhythm so far as the parameters of its next job. A higher weight has an earlier
 * deadline. */
static void estimate(const struct task_struct *p, struct task_ctx *tctx)
{
	u64 weight = p->scx.weight ?: 1;
	u64 deadline, budget;

	tctx->criticality = 0;
	tctx->base = TN_INFERRED;
	if (tctx->samples < COST_SAMPLES) {
		deadline = TN_NEWCOMER_DEADLINE;
		budget = TN_NEWCOMER_BUDGET;
	} else {
		/* A job that is short for its interval can be served at once for little. */
		deadline = MIN(rhythm(tctx), LATENCY_BURSTS * tctx->burst_ns);
		budget = MAX(tctx->burst_ns + BUDGET_DEVS * tctx->burst_dev_ns, BUDGET_MIN);
	}
	deadline = deadline * NICE_0_WEIGHT / weight;
	deadline = MIN(deadline, TN_INFERRED_DEADLINE_MAX);
	deadline = MAX(deadline, TN_INFERRED_DEADLINE_MIN);
	tctx->rel_deadline_ns = deadline;
	tctx->period_ns = MAX(rhythm(tctx), deadline);
	tctx->runtime_ns = MIN(budget, deadline);
}

/* Neither a hint nor a rule declares a deadline for the task. */
static void infer(const struct task_struct *p, struct task_ctx *tctx)
{
	estimate(p, tctx);
	if (tctx->rule_background)
		tctx->base = TN_BACKGROUND;
	claim_load(p, tctx, false);
}

/* Looks up the task's hint and rule again. Returns whether either declares a deadline. */
__weak int refresh_declared(struct task_struct *p __arg_trusted,
			    struct task_ctx *tctx __arg_nonnull, u64 now)
{
	struct temponet_hint *hint;

	tctx->params_at = now;
	hint = bpf_task_storage_get(&task_hints, p, 0, 0);
	/* A cleared hint may remain as zeroes. */
	if (hint && hint->version) {
		if (hint_valid(hint)) {
			declare(p, tctx, hint);
			return true;
		}
		this_stats()->hints_invalid++;
	}
	match_rules(p, tctx);
	if (tctx->by_rule && !tctx->rule_background && hint_valid(&tctx->rule_hint)) {
		declare(p, tctx, &tctx->rule_hint);
		return true;
	}
	return false;
}

/* Refreshes the parameters of a task at its wake-up. */
static void refresh_params(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (!hints_seen(tctx) || since(now, tctx->params_at) >= TN_PARAMS_REFRESH) {
		if (refresh_declared(p, tctx, now))
			return;
	} else if (tctx->base == TN_DECLARED) {
		return;
	}
	infer(p, tctx);
}

/* A rule may match the new name. The task looks its parameters up at its next wake-up or tick. */
SEC("tp_btf/task_rename")
int BPF_PROG(temponet_rename, struct task_struct *p, const char *comm)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->params_at = 0;
	return 0;
}

#endif /* __TEMPONET_PARAMS_BPF_H */
