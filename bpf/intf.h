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

	/* Words of a CPU mask in a record. */
	TN_MASK_WORDS = 8,
	TN_RING_BYTES = 256 * 1024,
	/* Tasks share a verdict's place by pid; powers of two for bounded(). */
	TN_VERDICTS = 4096,
	TN_SLACK_BINS = 128,
	TN_WORK_BINS = 32,
	TN_CLASSES = 2,
	/* Powers of two of a microsecond. */
	TN_AGE_BUCKETS = 32,
};

/* What a task is to us, in the order of service. */
enum temponet_tier {
	TN_DECLARED = 0, /* a job with parameters from a hint or a rule */
	TN_INFERRED = 1, /* a job with parameters we estimated */
	TN_LATE = 2, /* jobs that were given up in overload */
	TN_BACKGROUND = 3, /* CPU hogs: no jobs, shares by weight */
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
	 * at least once per min(TN_SERVE_EVERY, TN_STARVE_BOUND / 2 / n), the late
	 * ones by TN_SERVE_LATE_EVERY, whatever stands above it, and no more than
	 * once per TN_SERVE_LEAST and CPU. And as often as
	 * TN_SERVE_EVERY each CPU looks for somebody who was passed over for half of
	 * the bound, or for TN_AGING among hogs.
	 */
	TN_SERVE_EVERY = 250 * TN_MSEC,
	TN_SERVE_LATE_EVERY = 1000 * TN_MSEC,
	TN_SERVE_LEAST = 2 * TN_MSEC,
	/* What such a turn lasts, rounded up to the tick, and where more than so many
	 * wait per CPU. */
	TN_SLICE_BOUND = 3 * TN_MSEC,
	TN_SLICE_BOUND_CROWD = 1 * TN_MSEC,
	TN_BOUND_CROWD = 32,
	/* How long at most a CPU is spared the next one, and the next search. */
	TN_BOUND_REST = 100 * TN_MSEC,
	TN_PATROL_LEAST = 25 * TN_MSEC,
	/* How long those have turns for whom a declared task may be waiting, and how soon
	 * they are looked for again where there was none. */
	TN_STUCK_FOR = 500 * TN_MSEC,
	TN_HOLDER_EVERY = 10 * TN_MSEC,
	/* A fair-share hog of low weight is aged to the front within this. */
	TN_AGING = 1000 * TN_MSEC,

	/*
	 * Where so many jobs per CPU were late, the first of them so long ago, without
	 * a moment at which nobody waited, there is overload (pressure.bpf.h): only
	 * then do hopeless jobs step aside.
	 * Without overload they catch up soonest, and disturb least, where their
	 * deadline puts them: in front.
	 */
	TN_OVERLOAD_AFTER = 100 * TN_MSEC,
	TN_OVERLOAD_LATE = 3,
	/* How long late jobs are held to be in the way of others after they were. */
	TN_CONTENDED_FOR = 500 * TN_MSEC,

	/* Estimated deadlines stay within these. */
	TN_INFERRED_DEADLINE_MIN = 1 * TN_MSEC,
	TN_INFERRED_DEADLINE_MAX = 100 * TN_MSEC,
	/* What a task may run before we know anything about it. */
	TN_NEWCOMER_BUDGET = 50 * TN_MSEC,
	TN_NEWCOMER_DEADLINE = 40 * TN_MSEC,
	/* With so much to do waiting per CPU, jobs without a rhythm are background. */
	TN_CROWD = 320 * TN_MSEC,
	/* Between two estimated deadlines, less difference than this is not worth
	 * a context switch. */
	TN_INFERRED_PREEMPT_MARGIN = 3 * TN_MSEC,

	/* What a hog may run before an inferred job takes its CPU. */
	TN_HOG_STINT = 500 * TN_USEC,

	/* What a task may have in store for being charged for what it did not do. */
	TN_LEEWAY_MAX = 32 * TN_MSEC,

	/* How often a waking task's hint and rule are looked up again. */
	TN_PARAMS_REFRESH = 5 * TN_MSEC,
	TN_PARAMS_REFRESH_RUNNING = 100 * TN_MSEC,
	/* CPU clocks may disagree by this much. */
	TN_CLOCK_SKEW = 200 * TN_USEC,

	/* A job as short as this, and due as soon after its release, is short: no decision
	 * can be made in time for it, so the agent lets it pass, for TN_AGENT_YIELDS from
	 * when it was woken up. */
	TN_SHORT_JOB_RUNTIME = 1 * TN_MSEC,
	TN_SHORT_JOB_DEADLINE = 8 * TN_MSEC,
	TN_AGENT_YIELDS = 8 * TN_MSEC,
};
#define TN_STARVE_BOUND 4000000000ULL

/*
 * What follows the agent's silence. It is silent when it was rung for and has
 * not answered: a quiet machine does not ring.
 */
enum temponet_silence {
	TN_AGENT_LATE = 50 * TN_MSEC, /* the table of its last context */
	TN_AGENT_LOST = 500 * TN_MSEC, /* the rule distilled from its network */
};
#define TN_AGENT_GONE 10000000000ULL /* deadlines alone */

/* How long after the last contention the agent is still told of every change,
 * so that a periodic load is one conversation and not many. */
#define TN_EMIT_FOR 1000000000ULL
/* No job out of order for longer than this on an old promise. */
#define TN_PROMISE_MAX (100 * TN_MSEC)
/* However far ahead an expiry lies. */
#define TN_VERDICT_MAX 2000000000ULL
#define TN_TABLE_MAX 2000000000ULL

/* Who has the say over declared jobs. */
enum temponet_level {
	TN_LEVEL_AGENT = 0,
	TN_LEVEL_TABLE = 1,
	TN_LEVEL_DISTILLED = 2,
	TN_LEVEL_EDF = 3,
	TN_NR_LEVELS = 4,
};

/* Who decided a dispatch. */
enum temponet_source {
	TN_SRC_IDLE = 0, /* straight onto an idle CPU */
	TN_SRC_QUEUE = 1, /* head of the most urgent queue: EDF */
	TN_SRC_BOUND = 2, /* starvation bound: a lower queue's turn */
	TN_SRC_KTHREAD = 3, /* per-CPU kernel thread, never queued */
	TN_SRC_AGENT = 4, /* the agent's decision for this CPU */
	TN_SRC_TABLE = 5, /* best of the first few by the agent's Q-table */
	TN_SRC_DISTILLED = 6, /* the same by the distilled rule */
	TN_SRC_SELF = 7, /* a thread of the agent itself */
	TN_NR_SOURCES = 8,
};

/* Why a tick ends the slice of what a CPU runs. */
enum temponet_resched {
	TN_RESCHED_NOT = 0,
	TN_RESCHED_PENDING = 1, /* a more urgent job asked for this CPU */
	TN_RESCHED_BUDGET = 2, /* its job's budget is used up: the next job has another deadline */
	TN_RESCHED_URGENT = 3, /* somebody more urgent waits */
	TN_RESCHED_BOUND = 4, /* a queue, or a task, has waited its bound */
	TN_RESCHED_REPLENISHED = 5, /* a throttled task's next period began */
	TN_RESCHED_AGENT = 6, /* the agent let short jobs pass, and they have */
	TN_RESCHED_LOCAL = 7, /* somebody waits for this very CPU */
	TN_NR_RESCHEDS = 8,
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
	u64 misplaced; /* tasks that waited where no CPU of theirs looked, and were moved */
	u64 drifted; /* counts of waiting tasks that were wrong, and were mended */
	u64 resched[TN_NR_RESCHEDS]; /* why ticks ended a slice */

	u64 told; /* records to the agent */
	u64 untold; /* that found no room */
	u64 rung; /* of which so many rang */
	/* Decisions of the agent that were not followed: too old, for a task that
	 * cannot run here (gone, asleep, elsewhere), or for one that runs already. */
	u64 stale;
	u64 impossible;
	u64 duplicate;
	u64 transitions[TN_NR_LEVELS]; /* to this level */
	u64 age[TN_AGE_BUCKETS]; /* of the decisions that were followed */
};

/* What a CPU runs, for those who watch. */
struct temponet_cpu_view {
	u64 deadline_at; /* 0: it has none */
	u32 pid; /* 0: idle */
	u32 tier;
	char comm[TN_COMM_LEN];
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
 * What the agent is told: how a task with a declared deadline stands. A record
 * is complete in itself, so a lost one is made good by the next, and by the
 * iterator that tells of all of them.
 */
enum temponet_record_flags {
	TN_REC_RUNNABLE = 1,
	TN_REC_RUNNING = 2,
	TN_REC_EXITED = 4,
	TN_REC_PINNED = 8, /* may use @cpu only, for now */
	TN_REC_DECLARED = 16,
	TN_REC_FIRST = 32, /* after a silence: much may have gone untold */
};

struct temponet_record {
	u64 at; /* our clock, and the monotonic one at the same moment */
	u64 monotonic;
	u64 start_time; /* with the pid, names the task for good */
	u64 release_at;
	u64 deadline_at;
	u64 rel_deadline_ns;
	u64 period_ns;
	u64 exec_ns; /* of the current job */
	u64 cost_ns; /* what its jobs take, and how far that varies */
	u64 spread_ns;
	u64 job; /* number of the current job */
	u64 allowed[TN_MASK_WORDS];
	u32 pid;
	u32 tgid;
	u32 cpu;
	u32 flags;
	u32 criticality;
	u32 reserved;
	char comm[TN_COMM_LEN];
};

/* One CPU's next task. Its expiry is written last. */
struct temponet_decision {
	u64 task; /* pid << 32 | number of the job, low half */
	u64 made_at; /* for a machine as it was then */
	u64 expires_at;
	u64 reserved;
};

/* By class, slack bin (0: none left) and work bin. */
struct temponet_table {
	short q[TN_CLASSES * TN_SLACK_BINS * TN_WORK_BINS];
};

/* A verdict: pid << 32 | expiry in units of 2^20 ns (30 bits) << 2 | one of these. */
enum temponet_verdict {
	TN_VERDICT_NONE = 0,
	TN_VERDICT_KEEP = 1,
	TN_VERDICT_GIVE_UP = 2,
};

/*
 * What the agent says, in memory that both map. Whatever stands here may be old,
 * torn or a lie: nothing is used but as a preference among tasks that wait anyway.
 */
struct temponet_board {
	u64 heartbeat_at;
	u64 ring_after; /* it is not to be rung for before this */
	/* Until then any order of the waiting jobs costs no deadline. */
	u64 free_until;
	u64 table_until;
	u64 untold; /* records that were lost: written by us, read by the agent */
	u32 nr_slack_edges;
	u32 nr_work_edges;
	u32 has_distilled;
	u32 reserved;
	u64 slack_edges[TN_SLACK_BINS];
	u64 work_edges[TN_WORK_BINS];
	struct temponet_table table;
	struct temponet_table distilled;
	struct temponet_decision decisions[TN_MAX_CPUS];
	u64 verdicts[TN_VERDICTS];
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
