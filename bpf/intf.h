/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF half and the Rust half must agree on: every shared constant and
 * every struct that crosses between them. Rust sees this file through bindgen.
 */
#ifndef __TEMPONET_INTF_H
#define __TEMPONET_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
#endif

#define TEMPONET_HINT_TYPES_ONLY
#include "../include/temponet_hint.h"

enum temponet_consts {
	TN_MAX_CPUS = 1024,
	/* One queue domain per last-level cache. */
	TN_MAX_DOMS = 64,
	TN_MAX_RULES = 64,
	TN_COMM_LEN = 16,
	TN_CGROUP_LEN = 48,
	/* Rows kept for "worst offenders"; the least recently missing goes first. */
	TN_MAX_OFFENDERS = 256,
};

/*
 * What a task is to us. The order is the order of service; the two lower tiers
 * share what the upper two leave over.
 */
enum temponet_tier {
	TN_DECLARED = 0, /* a job with parameters from a hint or a rule */
	TN_INFERRED = 1, /* a job with parameters we estimated */
	TN_BACKGROUND = 2, /* CPU hogs: no jobs, shares by weight */
	TN_LATE = 3, /* jobs that can no longer make their deadline */
	TN_NR_TIERS = 4,
};

/* Times are nanoseconds. */
enum temponet_times {
	TN_USEC = 1000,
	TN_MSEC = 1000 * 1000,

	/* Upper tiers are preempted by urgency, not by slice; this only bounds
	 * how long a tickless CPU can go without asking us. */
	TN_SLICE_JOB = 20 * TN_MSEC,
	TN_SLICE_BACKGROUND = 4 * TN_MSEC,

	/*
	 * No runnable task waits longer than this (docs/scheduler.md has the
	 * argument, tests/vm the test): each queue with n waiting tasks is served
	 * at least once per min(TN_SERVE_EVERY, TN_STARVE_BOUND / 2 / n), whatever
	 * stands above it, and no more than once per TN_SERVE_LEAST.
	 */
	TN_SERVE_EVERY = 250 * TN_MSEC,
	TN_SERVE_LEAST = 5 * TN_MSEC,
	/* What such a turn lasts, rounded up to the tick. */
	TN_SLICE_BOUND = 1 * TN_MSEC,
	/* A fair-share hog of low weight is aged to the front within this. */
	TN_AGING = 1000 * TN_MSEC,

	/*
	 * A CPU whose jobs have not all been served for so long, and so many of them
	 * late in that time, is overloaded: only then do hopeless jobs step aside.
	 * Without overload they catch up soonest, and disturb least, where their
	 * deadline puts them: in front.
	 */
	TN_OVERLOAD_AFTER = 100 * TN_MSEC,
	TN_OVERLOAD_LATE = 3,

	/* Estimated deadlines stay within these. */
	TN_INFERRED_DEADLINE_MIN = 1 * TN_MSEC,
	TN_INFERRED_DEADLINE_MAX = 100 * TN_MSEC,
	/* What a task may run before we know anything about it. */
	TN_NEWCOMER_BUDGET = 50 * TN_MSEC,
	TN_NEWCOMER_DEADLINE = 40 * TN_MSEC,
	/* With so many jobs waiting per CPU newcomers are background. */
	TN_CROWD = 8,
	/* Between two estimated deadlines, less difference than this is not worth
	 * a context switch. */
	TN_INFERRED_PREEMPT_MARGIN = 3 * TN_MSEC,

	/* What a hog may run before an inferred job takes its CPU. */
	TN_HOG_STINT = 500 * TN_USEC,

	/* How often a waking task's hint and rule are looked up again. */
	TN_PARAMS_REFRESH = 5 * TN_MSEC,
	TN_PARAMS_REFRESH_RUNNING = 100 * TN_MSEC,
	/* CPU clocks may disagree by this much. */
	TN_CLOCK_SKEW = 200 * TN_USEC,
};
#define TN_STARVE_BOUND 4000000000ULL

/* Who decided a dispatch. */
enum temponet_source {
	TN_SRC_IDLE = 0, /* straight onto an idle CPU */
	TN_SRC_QUEUE = 1, /* head of the most urgent queue: EDF */
	TN_SRC_BOUND = 2, /* starvation bound: a lower queue's turn */
	TN_SRC_KTHREAD = 3, /* per-CPU kernel thread, never queued */
	TN_NR_SOURCES = 4,
};

/* Per CPU and class, summed up by userspace. Only ever grow. */
struct temponet_class_stats {
	u64 released;
	u64 met;
	u64 missed;
	u64 response_ns;
	u64 response_max_ns;
	u64 lateness_ns; /* of missed jobs */
	u64 lateness_max_ns;
	u64 runs;
	u64 run_ns;
	u64 wait_ns;
	u64 wait_max_ns;
};

struct temponet_cpu_stats {
	struct temponet_class_stats class[TN_NR_TIERS];
	u64 dispatches[TN_NR_SOURCES];
	u64 preemptions;
	u64 steals;
	u64 hopeless; /* jobs moved to the late queue */
	u64 rollovers; /* job boundaries found by budget, not by sleep */
	u64 demotions; /* inferred jobs that outran their estimate */
	u64 hints_invalid;
};

/* Worst offenders, keyed by tid. */
struct temponet_offender {
	u64 missed;
	u64 met;
	u64 lateness_max_ns;
	u64 last_miss_at;
	u32 tgid;
	u32 tier;
	char comm[TN_COMM_LEN];
};

/*
 * A rule from the rules file. Patterns are compared as masked words, so that
 * exact names and prefixes cost the same few instructions and no loop.
 */
struct temponet_rule {
	u64 comm[TN_COMM_LEN / 8];
	u64 comm_mask[TN_COMM_LEN / 8];
	u64 cgroup[TN_CGROUP_LEN / 8];
	u64 cgroup_mask[TN_CGROUP_LEN / 8];
	struct temponet_hint hint;
	u32 has_cgroup;
	u32 background;
};

#endif /* __TEMPONET_INTF_H */
