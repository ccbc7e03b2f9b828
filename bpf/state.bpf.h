/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's state: per task, per CPU, and the shape of the machine. Every other header reads
 * it, so it includes none of them.
 */
#ifndef __TEMPONET_STATE_BPF_H
#define __TEMPONET_STATE_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * An index that the verifier accepts, for arrays whose length is a power of two. Without the
 * barrier the compiler may prove that the mask changes nothing and leave it out; the verifier
 * cannot follow that proof and rejects the access.
 */
static __always_inline u32 bounded(u32 index, u32 len)
{
	barrier_var(index);
	return index & (len - 1);
}

/* Set by userspace before loading. CPUs are listed domain by domain. */
const volatile u32 nr_cpus = 1;
const volatile u32 nr_doms = 1;
const volatile u32 cpu_dom[TN_MAX_CPUS];
const volatile u32 cpu_order[TN_MAX_CPUS];
const volatile u32 dom_start[TN_MAX_DOMS];
const volatile u32 dom_len[TN_MAX_DOMS] = { 1 };
/* 1: hopeless jobs are given up in overload. 0: earliest deadline first, whatever comes. */
const volatile u32 give_up = 1;
const volatile u32 nr_rules;
const volatile struct temponet_rule rules[TN_MAX_RULES];

/* Wake-up state of a task. Unless it is AWAKE, its next enqueue may release a job. */
enum {
	AWAKE,
	ASLEEP,
	/* Not seen awake yet: just forked, or older than the scheduler. */
	NEWBORN,
};

/* Job lengths that must have been seen before their mean replaces a declared or default one.
 * docs/measurements/agent.md has the runs with two and with four. */
#define COST_SAMPLES 2
/* Wake-ups that must have been seen before a rhythm can be steady, and before the agent is given
 * the mean and deviation of job lengths. */
#define RHYTHM_SAMPLES 4

struct task_ctx {
	/* The current job. */
	u64 release_at;
	u64 deadline_at;
	u64 exec_ns; /* executed so far */
	u64 budget_ns; /* may execute before its budget is used up */
	bool open; /* released, not yet counted as met or missed */
	bool rolled; /* released by a used-up budget, not by a wake-up */
	bool dropped; /* given up in overload, see shed_load() */
	bool given_up; /* by the agent's verdict */
	u64 due_at; /* of a kept task: by when its job is to be done, 0: by its deadline */
	bool kept; /* by the agent's verdict; the agent also keeps all where all fit */
	bool demoted; /* inferred and outran its estimate, or one of a crowd: a hog for now */
	u8 sleep; /* AWAKE, ASLEEP, NEWBORN */
	bool stuck; /* sleeps uninterruptibly in the middle of a job, see stuck.bpf.h */
	u64 stuck_job; /* the last job for which possible holders had turns */
	u64 holder_turn_at; /* stuck_since of the stuck task for which this one had a turn */
	u64 job; /* number of the current job */
	u64 emitted_job; /* the last job that note_release() has seen */
	bool agent_knows; /* the agent's last record says that the task is declared */

	/* Parameters in force, and the tier they give the task at best. */
	u8 base;
	u8 job_class; /* class that the open job is counted under */
	u8 run_tier; /* tier that the task runs or waits in */
	bool placed; /* given an idle CPU, and not running there yet */
	bool by_rule;
	bool rule_background;
	u32 criticality;
	u64 declared_ns; /* the declared runtime, runtime_ns as it is read (work.bpf.h) */
	u64 runtime_ns;
	u64 rel_deadline_ns;
	u64 period_ns;
	u64 params_at; /* when hint and rule were looked up, 0: to be looked up */
	u32 hint_changes; /* the count of changed hints at that time */
	u64 claim; /* the task's part of declared_load (load.bpf.h) */
	bool restricted; /* counted in nr_restricted (load.bpf.h) */
	/* The name, cgroup and user that the rules were last matched against. */
	u64 comm[2];
	u64 matched_cgroup;
	u32 matched_user;
	struct temponet_hint rule_hint;

	/* Waiting and running. */
	u32 pid;
	u32 cpu; /* where the task ran last */
	bool rcu; /* a thread of RCU itself, see rcu.bpf.h */
	u8 reader; /* see rcu.bpf.h */
	u64 awake_ns; /* CPU time since the task last slept */
	bool on_cpu;
	bool bypass_queue; /* the agent, running past the queues on its credit */
	u32 queue; /* 1 + index of the queue that counts the task, 0: none */
	u64 queued_at;
	u64 waits_since; /* queued_at, or that of before a turn that was cut short */
	u64 turn_left; /* while more than half of a turn is left, waits_since is kept */
	u64 accounted_ns; /* sum_exec_runtime at the last account() */
	u64 slept_at; /* end of the job, unless the next wake-up continues it */

	/* Fair shares (fair.bpf.h, group.bpf.h). */
	u64 vtime; /* the task's place on its group's clock */
	u64 weight; /* 1024 at nice 0 */
	u64 counted_weight; /* its part of the group's sum of runnable weights, 0: none */
	u32 group;

	/* Rhythm and audition (rhythm.bpf.h). */
	u64 timer_at; /* the last time until which the task chose to sleep, 0: none */
	u64 timer_set_at;
	u64 grid_ns; /* the period of its timers, 0: not known */
	u64 grid_claim; /* its part of grid_load */
	u8 grid_timers; /* timers on the grid so far */
	u64 process_grid_at; /* of the first thread: when one of the process was last on a grid */
	u64 audition_left; /* CPU time that is left of its audition */
	bool audition_sibling; /* the last one was that of a sibling of a task on a grid */
	u64 audition_at; /* no other before this */

	/* Loans (lend.bpf.h): as the holder of a lock, and as the task that waits for it. */
	u64 loan_until; /* 0: none */
	u64 loan_deadline;
	u64 loan_left; /* CPU time */
	u64 lent_job; /* the last job in which the task lent its deadline */
	u32 lent_to;

	u64 parked_at; /* since when it is parked (quota.bpf.h), 0: it is not */
	u32 hog_dom; /* 1 + the domain that counts it among its hogs, 0: none */

	/* Estimates: running means and mean deviations, see learn(). */
	u64 woke_at;
	u64 burst_exec_ns;
	u64 leeway_ns; /* may run this much beyond its declared share, see settle_leeway() */
	u64 burst_ns;
	u64 burst_dev_ns;
	u64 interval_ns;
	u64 interval_dev_ns;
	u32 samples;

	u32 met;
	u32 missed;
	u32 tie; /* orders late tasks of the same cost, so that one catches up rather than none */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

/*
 * Urgency: the tier in the top bits, then a time within the tier; smaller is more urgent. It is
 * one word, so that other CPUs can read it without a lock. They may read an old one. That costs a
 * preemption that dispatch() undoes by keeping the running task, or one that comes only at the
 * next tick.
 */
#define URGENCY_KEY_BITS 60
#define URGENCY_IDLE (~0ULL)
#define URGENCY_NEVER 0ULL

static u64 urgency(u32 tier, u64 key)
{
	return ((u64)tier << URGENCY_KEY_BITS) |
	       (key & ((1ULL << URGENCY_KEY_BITS) - 1));
}

/* The urgency of a turn by the bound: only declared jobs come before it. */
#define URGENCY_TURN ((u64)TN_INFERRED << URGENCY_KEY_BITS)

static u32 urgency_tier(u64 urg)
{
	return urg >> URGENCY_KEY_BITS;
}

/* Why a task has a turn by the bound. */
enum turn {
	TURN_NONE,
	TURN_QUEUE, /* its queue was due */
	TURN_SINGLE, /* the task itself was due, whatever stood before it in its queue */
};

struct cpu_ctx {
	u64 urgency; /* of the running task */
	bool runs_short_job; /* the running task's job is short, see TN_SHORT_JOB_DEADLINE */
	bool short_job_next; /* a short job came, and the task taken next is not running yet */
	bool preempt_pending; /* preempt() asked for this CPU, and dispatch() has not decided yet */
	u64 hog_since; /* when a late or background task began to run here */

	/* Turns by the bound (bound.bpf.h). */
	u8 bound_turn; /* enum turn: the next task to run has a turn */
	bool last_turn_holder; /* the last turn was for a stuck task's sake */
	bool siblings_first; /* the next search for holders begins with threads of the process */
	u32 bound_tier; /* tier of the last turn of a queue */
	bool rcu_turn; /* the last task that waited longest was a thread of RCU */
	bool bound_shared; /* the domain's queues were asked first the last time */
	bool looked_again; /* not of turns: the queues were looked at again on the way to idle */
	u64 bound_since; /* when the current turn began, 0: it is over */
	u64 bound_again; /* no other turn before this */
	u64 holder_at; /* no other search for holders before this, see stuck.bpf.h */
	u64 turn_until; /* until then only declared jobs preempt the task that has the turn */
	u64 patrol_at; /* when to search for single tasks that were passed over */
	u32 patrol_next; /* the queue at which that search begins */
	u32 patrol_dom; /* the other domain that it includes */
	u32 walked; /* tasks that a walk over a queue has looked at, see begin_walk() */

	u32 lend_queue; /* where the holder of a lock waits that is to be moved, see lend.bpf.h */
	u32 lend_pid; /* 0: none */
	u64 use; /* of this CPU so far, of 1024 (work.bpf.h) */
	u64 use_at;
	u32 perf; /* the clock asked for, of 1024 */

	u64 followed; /* made_at of the agent's decision that was used last */
	u64 supply_at; /* since when the supply is not counted yet (supply.bpf.h) */
	u64 supply_from; /* when the running task began to run */
	bool supply_wanted; /* declared jobs wanted the CPU then */
	u64 trust_until; /* the running task may stay out of deadline order until then */
} __attribute__((aligned(64)));

static struct cpu_ctx cpu_ctxs[TN_MAX_CPUS];

/* Each CPU writes its own. Userspace reads them through the mmapped bss and adds them up. */
struct temponet_cpu_stats cpu_stats[TN_MAX_CPUS];

struct temponet_cpu_view cpu_views[TN_MAX_CPUS];

/* 1: this CPU is online, see placement.bpf.h. */
u8 cpu_online[TN_MAX_CPUS];
/* Changes of cpu_online since load. */
u32 hotplugs;

static struct cpu_ctx *cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[bounded(cpu, TN_MAX_CPUS)];
}

/*
 * The counter of a walk over a queue. It lies in memory, of which the verifier knows nothing. With a
 * counter of its own it would follow every length of a walk by itself. Walks are not nested, and
 * none is interrupted by another on its CPU.
 */
static u32 *begin_walk(void)
{
	u32 *walked = &cpu_ctx(bpf_get_smp_processor_id())->walked;

	*walked = 0;
	return walked;
}

static struct temponet_cpu_stats *this_stats(void)
{
	return &cpu_stats[bounded(bpf_get_smp_processor_id(), TN_MAX_CPUS)];
}

static u32 dom_of(s32 cpu)
{
	return bounded(cpu_dom[bounded(cpu, TN_MAX_CPUS)], TN_MAX_DOMS);
}

/* Online CPUs of each domain, and the number of domains without one. */
static u32 dom_online[TN_MAX_DOMS];
static u32 nr_dead_doms;
static u32 nr_online;

/* CPUs that serve the queues of @dom. At least 1, because callers divide by it. */
static u32 nr_servers(u32 dom)
{
	return MAX(dom_online[bounded(dom, TN_MAX_DOMS)], 1);
}

static bool is_online(s32 cpu)
{
	return cpu_online[bounded(cpu, TN_MAX_CPUS)];
}

/* May @p be queued for @cpu? */
static bool may_use(const struct task_struct *p, s32 cpu)
{
	return is_online(cpu) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* A lane is the set of queues of one domain or of one CPU. Lane ids: domains first, then CPUs.
 * A power of two for bounded(). */
#define NR_LANES 2048

static u32 cpu_lane(s32 cpu)
{
	return TN_MAX_DOMS + cpu;
}

/* @p can run on one CPU only, for now. */
static bool pinned(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || is_migration_disabled(p);
}

/* An exiting task has no more jobs. disable() is called for it only much later, when its
 * task_struct goes. */
static bool is_exiting(const struct task_struct *p)
{
	return p->flags & PF_EXITING;
}

static struct temponet_class_stats *class_stats(u32 class)
{
	return &this_stats()->class[bounded(class, TN_NR_TIERS)];
}

/* 0 where @then lies in the future: the clocks of CPUs differ a little. */
static u64 since(u64 now, u64 then)
{
	return time_after(now, then) ? now - then : 0;
}

#endif /* __TEMPONET_STATE_BPF_H */
