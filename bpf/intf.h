/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants and structs that the BPF half and the Rust half share. Each stands here once, so that
 * the two cannot disagree: Rust reads this file through bindgen.
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
	/* Rows of the table of worst offenders. The task whose last miss is oldest is evicted. */
	TN_MAX_OFFENDERS = 256,

	/* Words of a CPU mask in a record. */
	TN_MASK_WORDS = 8,
	TN_RING_BYTES = 256 * 1024,
	/* Slots for verdicts, by the low bits of the pid. This and the numbers of bins are powers
	 * of two for bounded(). */
	TN_VERDICTS = 4096,
	TN_SLACK_BINS = 128,
	TN_WORK_BINS = 32,
	TN_CLASSES = 2,
	/* Buckets for the age of decisions: bucket n counts ages from 2^n us on. */
	TN_AGE_BUCKETS = 32,
};

/* The tiers, in the order in which they are served. */
enum temponet_tier {
	TN_DECLARED = 0, /* a job with parameters from a hint or a rule */
	TN_INFERRED = 1, /* a job with estimated parameters */
	TN_LATE = 2, /* a job that was given up in overload */
	TN_BACKGROUND = 3, /* a hog: it has no jobs and shares by weight */
	TN_NR_TIERS = 4,
};

/* Times are nanoseconds. */
enum temponet_times {
	TN_USEC = 1000,
	TN_MSEC = 1000 * 1000,

	/* Jobs are preempted by urgency, not by slice. Their slice only bounds how long a CPU
	 * without ticks can go without a dispatch. */
	TN_SLICE_JOB = 20 * TN_MSEC,
	TN_SLICE_BACKGROUND = 4 * TN_MSEC,

	/*
	 * The bound (bound.bpf.h): no runnable task should wait longer than TN_STARVE_BOUND.
	 * docs/scheduler.md has the argument and its limits, tests/vm the tests.
	 *
	 * A queue with n waiting tasks is served at least once per
	 * min(TN_SERVE_EVERY, TN_STARVE_BOUND / 2 / n), whatever stands above it. The late queue
	 * has TN_SERVE_LATE_EVERY instead. Neither is served for the bound more often than once per
	 * TN_SERVE_LEAST and CPU. Every TN_SERVE_EVERY each CPU also looks for single tasks that
	 * have waited for half of the bound, or for TN_AGING if they are hogs.
	 */
	TN_SERVE_EVERY = 250 * TN_MSEC,
	TN_SERVE_LATE_EVERY = 1000 * TN_MSEC,
	TN_SERVE_LEAST = 2 * TN_MSEC,
	/* Length of a turn by the bound, rounded up to the tick. The shorter one holds where more
	 * than TN_BOUND_CROWD tasks wait per CPU. */
	TN_SLICE_BOUND = 3 * TN_MSEC,
	TN_SLICE_BOUND_CROWD = 1 * TN_MSEC,
	TN_BOUND_CROWD = 32,
	/* The longest pause between two turns on a CPU, and between two searches for single tasks
	 * where the last one found some. TN_PATROL_LEAST is the shortest pause between searches. */
	TN_BOUND_REST = 100 * TN_MSEC,
	TN_PATROL_LEAST = 25 * TN_MSEC,
	/* While a declared task is stuck (stuck.bpf.h), tasks that may hold it up have turns, for
	 * TN_STUCK_FOR at most. Where a search found none, the next is TN_HOLDER_EVERY later. */
	TN_STUCK_FOR = 500 * TN_MSEC,
	TN_HOLDER_EVERY = 10 * TN_MSEC,
	/* A task of a cgroup whose cpu.max is used up is kept waiting for this long at most
	 * before it is looked at again (quota.bpf.h). */
	TN_PARK_MAX = 2000 * TN_MSEC,
	/* A hog of whatever weight comes to the front of its queue within this. */
	TN_AGING = 1000 * TN_MSEC,

	/*
	 * Overload (pressure.bpf.h): TN_OVERLOAD_LATE jobs per CPU were late, the first of them
	 * TN_OVERLOAD_AFTER ago, without a moment at which no job waited. Only then are hopeless
	 * jobs given up. Without overload a late job catches up soonest, and disturbs least, where
	 * its deadline puts it: in front.
	 */
	TN_OVERLOAD_AFTER = 100 * TN_MSEC,
	TN_OVERLOAD_LATE = 3,
	/* A given-up job that runs prolongs the overload if declared jobs contended within this
	 * time before. */
	TN_CONTENDED_FOR = 500 * TN_MSEC,

	/* The range of estimated relative deadlines. */
	TN_INFERRED_DEADLINE_MIN = 1 * TN_MSEC,
	TN_INFERRED_DEADLINE_MAX = 100 * TN_MSEC,
	/* Budget and deadline of a task with too few samples for an estimate. */
	TN_NEWCOMER_BUDGET = 50 * TN_MSEC,
	TN_NEWCOMER_DEADLINE = 40 * TN_MSEC,
	/* Where jobs without a steady rhythm would take longer than this per CPU, they are
	 * background (crowded() in enqueue.bpf.h). */
	TN_CROWD = 320 * TN_MSEC,
	/* Two estimated deadlines that differ by less than this are not worth a context switch. */
	TN_INFERRED_PREEMPT_MARGIN = 3 * TN_MSEC,

	/* A hog runs for at least this long before an inferred job preempts it. */
	TN_HOG_STINT = 500 * TN_USEC,

	/* The most leeway a declared task can have (budget.bpf.h). */
	TN_LEEWAY_MAX = 32 * TN_MSEC,

	/* The hint and rule of a task are looked up again no more often than this: at a wake-up,
	 * and while it runs without sleeping. */
	TN_PARAMS_REFRESH = 5 * TN_MSEC,
	TN_PARAMS_REFRESH_RUNNING = 100 * TN_MSEC,
	/* The clocks of two CPUs may differ by this much. */
	TN_CLOCK_SKEW = 200 * TN_USEC,

	/* A job is short if its runtime and its relative deadline are no longer than these. No
	 * decision can come in time for it. So the agent yields to short jobs, for TN_AGENT_YIELDS
	 * from its wake-up on. */
	TN_SHORT_JOB_RUNTIME = 1 * TN_MSEC,
	TN_SHORT_JOB_DEADLINE = 8 * TN_MSEC,
	TN_AGENT_YIELDS = 8 * TN_MSEC,
};
#define TN_STARVE_BOUND 4000000000ULL

/*
 * How long the agent may be silent before something else decides in its place. Silence counts
 * from the first ring that it has not answered: an uncontended machine does not ring.
 */
enum temponet_silence {
	TN_AGENT_LATE = 50 * TN_MSEC, /* then the table that it wrote last decides */
	TN_AGENT_LOST = 500 * TN_MSEC, /* then the rule distilled from its network */
};
#define TN_AGENT_GONE 10000000000ULL /* then deadlines alone */

/* Records go on for this long after the last contention. A periodic load is then one stream of
 * records, not many short ones that each begin with a resynchronisation. */
#define TN_EMIT_FOR 1000000000ULL
/* A decision or a promise (free_until) that ends further ahead than this is ignored. */
#define TN_PROMISE_MAX (100 * TN_MSEC)
/* The same for a verdict and for the table. */
#define TN_VERDICT_MAX 2000000000ULL
#define TN_TABLE_MAX 2000000000ULL
/* A task that is behind is due no further ahead than this. */
#define TN_LOAN_MAX 4500000000ULL

/* What decides the order of waiting declared jobs. */
enum temponet_level {
	TN_LEVEL_AGENT = 0,
	TN_LEVEL_TABLE = 1,
	TN_LEVEL_DISTILLED = 2,
	TN_LEVEL_EDF = 3,
	TN_NR_LEVELS = 4,
};

/* What decided a dispatch. */
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

/* Why a tick ends the slice of the task that a CPU runs. */
enum temponet_resched {
	TN_RESCHED_NOT = 0,
	TN_RESCHED_PENDING = 1, /* a more urgent job asked for this CPU */
	TN_RESCHED_BUDGET = 2, /* the budget is used up, and the next job has another deadline */
	TN_RESCHED_URGENT = 3, /* a more urgent task waits */
	TN_RESCHED_BOUND = 4, /* a queue, or a task, has waited its bound */
	TN_RESCHED_REPLENISHED = 5, /* a throttled task's next period began */
	TN_RESCHED_AGENT = 6, /* the agent yields to a short job, or returns after one */
	TN_RESCHED_LOCAL = 7, /* a task waits in the CPU's local DSQ */
	TN_RESCHED_QUOTA = 8, /* the cpu.max of a cgroup is used up */
	TN_NR_RESCHEDS = 16, /* a power of two for bounded() */
};

/* Counters per CPU and class. Userspace adds them up. They never decrease. */
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
	u64 misplaced; /* tasks moved from a lane that no CPU of theirs serves */
	u64 parked; /* times that a task waited because its cgroup's cpu.max was used up */
	u64 parked_ns;
	u64 lent; /* deadlines lent to the holder of a lock */
	u64 perf_requests; /* changes of the clock frequency asked for */
	u64 drifted; /* wrong counts of waiting tasks that were corrected */
	u64 resched[TN_NR_RESCHEDS]; /* why ticks ended a slice */

	u64 told; /* records for the agent */
	u64 untold; /* records that found no room in the ring buffer */
	u64 rung; /* records that woke the agent */
	/* Decisions of the agent that were not followed: too old; for a task that cannot run here
	 * (gone, asleep, elsewhere); for a task that runs already. */
	u64 stale;
	u64 impossible;
	u64 duplicate;
	u64 transitions[TN_NR_LEVELS]; /* changes to each level */
	u64 age[TN_AGE_BUCKETS]; /* ages of the decisions that were followed */
};

/* The task that a CPU runs, for the monitor. */
struct temponet_cpu_view {
	u64 deadline_at; /* 0: no open job */
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
 * A record for the agent: the state of a task with a declared deadline. Each record is complete in
 * itself. So the next record of the task replaces a lost one, and the iterator emit_all() replaces
 * all.
 */
enum temponet_record_flags {
	TN_REC_RUNNABLE = 1,
	TN_REC_RUNNING = 2,
	TN_REC_EXITED = 4,
	TN_REC_PINNED = 8, /* the task may use only @cpu, for now */
	TN_REC_DECLARED = 16,
	TN_REC_FIRST = 32, /* no records for a while before: the agent's picture is old */
};

struct temponet_record {
	u64 at; /* scx_bpf_now(), and the monotonic clock at the same moment */
	u64 monotonic;
	u64 start_time; /* tells tasks apart that have the same pid one after the other */
	u64 release_at;
	u64 deadline_at;
	u64 rel_deadline_ns;
	u64 period_ns;
	u64 exec_ns; /* of the current job */
	u64 cost_ns; /* what the task's jobs usually take, and the mean deviation */
	u64 spread_ns;
	u64 declared_ns; /* what they take at most, as declared */
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

/* The next task of one CPU. The expiry is written last (read_decision() in board.bpf.h). */
struct temponet_decision {
	u64 task; /* pid << 32 | number of the job, low half */
	u64 made_at; /* a release after this makes the decision stale */
	u64 expires_at;
	u64 reserved;
};

/* The value of a job by class, slack bin (0: no slack left) and work bin; more is better. */
struct temponet_table {
	short q[TN_CLASSES * TN_SLACK_BINS * TN_WORK_BINS];
};

enum temponet_verdict {
	TN_VERDICT_NONE = 0,
	TN_VERDICT_KEEP = 1,
	TN_VERDICT_GIVE_UP = 2,
};

/*
 * What the agent decided for a task. @word: pid << 32 | expiry in units of 2^20 ns (30 bits) << 2 |
 * verdict. @due_at: a kept task is behind. Its jobs due before this will be late, and are to be
 * done by then; 0: none is.
 */
struct temponet_judgement {
	u64 word;
	u64 due_at;
};

/* Of the time in which declared jobs wanted a CPU, the part in which it ran one. */
struct temponet_supply {
	u64 wanted_ns;
	u64 ran_ns;
};

/*
 * The agent's side of the conversation, in memory that both halves map. Any word of it may be old,
 * torn or a lie. So it is used only as a preference among tasks that wait anyway.
 */
struct temponet_board {
	u64 heartbeat_at;
	u64 ring_after; /* the agent wants no ring before this */
	/* The agent's promise that until then any order of the waiting jobs meets all deadlines. */
	u64 free_until;
	u64 table_until;
	u64 untold; /* lost records: written by the BPF half, read by the agent */
	u32 nr_slack_edges;
	u32 nr_work_edges;
	u32 has_distilled;
	u32 reserved;
	u64 slack_edges[TN_SLACK_BINS];
	u64 work_edges[TN_WORK_BINS];
	struct temponet_table table;
	struct temponet_table distilled;
	struct temponet_decision decisions[TN_MAX_CPUS];
	struct temponet_judgement judgements[TN_VERDICTS];
	struct temponet_supply supply[TN_MAX_CPUS]; /* written by the BPF half */
};

/*
 * A rule from the rules file. Patterns are compared as masked words: exact names and prefixes then
 * cost the same few instructions, without a loop over characters.
 */
struct temponet_rule {
	u64 comm[TN_COMM_LEN / 8];
	u64 comm_mask[TN_COMM_LEN / 8];
	u64 cgroup[TN_CGROUP_LEN / 8];
	u64 cgroup_mask[TN_CGROUP_LEN / 8];
	struct temponet_hint hint;
	u32 has_cgroup;
	u32 background;
	u32 has_user;
	u32 uid;
};

#endif /* __TEMPONET_INTF_H */
