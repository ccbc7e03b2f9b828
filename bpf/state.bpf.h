/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler remembers: per task, per CPU, and the machine's shape.
 */
#ifndef __TEMPONET_STATE_BPF_H
#define __TEMPONET_STATE_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * An index that the verifier believes in, for arrays whose length is a power of
 * two. The barrier keeps the compiler from proving the mask superfluous and
 * leaving it out, which it can and the verifier cannot.
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
/* In overload hopeless jobs step aside; else earliest deadline first, whatever comes. */
const volatile u32 give_up = 1;
const volatile u32 nr_rules;
const volatile struct temponet_rule rules[TN_MAX_RULES];

/* Wake-up state of a task: why its next enqueue may release a job. */
enum {
	AWAKE,
	ASLEEP,
	/* Never seen awake: it was forked, or we were loaded around it. */
	NEWBORN,
};

struct task_ctx {
	/* The current job. */
	u64 release_at;
	u64 deadline_at;
	u64 exec_ns; /* executed so far */
	u64 budget_ns; /* what it may execute as the job it is */
	bool open; /* released, not yet counted as met or missed */
	bool rolled; /* released by a used-up budget, not by a wake-up */
	bool dropped; /* given up in overload, see shed_load() */
	bool given_up; /* by the agent */
	bool kept; /* by the agent, which may be because all fit */
	bool demoted; /* inferred, and outran its estimate: a hog for now */
	u8 sleep; /* AWAKE, ASLEEP, NEWBORN */
	bool stuck; /* asleep for what somebody holds, see stuck.bpf.h */
	u64 stuck_job; /* the last one that others had turns for */
	u64 holder_turn_at; /* when the one began to be stuck for whom it had a turn */
	u64 job; /* its number */
	u64 emitted_job; /* the last one that the agent heard of as waiting */
	bool agent_knows; /* as a task with a declared deadline */

	/* Parameters in force, and the tier they give the task at best. */
	u8 base;
	u8 job_class; /* class that the open job is counted under */
	u8 run_tier; /* tier it is running or waiting in */
	bool placed; /* put onto an idle CPU by us, and not running there yet */
	bool by_rule;
	bool rule_background;
	u32 criticality;
	u64 runtime_ns;
	u64 rel_deadline_ns;
	u64 period_ns;
	u64 params_at;
	u64 claim; /* what load.bpf.h counts it for */
	bool restricted; /* and whether as a task that may not use all CPUs */
	/* The name and cgroup that the rules were last matched against. */
	u64 comm[2];
	u64 matched_cgroup;
	struct temponet_hint rule_hint;

	/* Waiting and running. */
	u32 pid;
	u32 cpu; /* where it ran last */
	bool rcu; /* it ends the kernel's grace periods */
	u8 reader; /* see rcu.bpf.h */
	u64 awake_ns; /* its CPU time since it last slept */
	bool on_cpu;
	bool bypass_queue; /* a thread of the agent that was let past the queues */
	u32 queue; /* 1 + index of the queue it is counted in, 0: none */
	u64 queued_at;
	u64 waits_since; /* the same, or before a turn that was cut short */
	u64 turn_left; /* what it may use before it waits anew */
	u64 accounted_ns; /* its CPU time that our books know of */
	u64 slept_at; /* when the job ended, unless the task continues it */
	u64 vtime; /* fair-share clock of a hog */
	u64 hog_weight; /* 100 x 1024 at nice 0 in the root cgroup */
	u64 cgroup_charge; /* what its cgroup counts it for */

	/* Estimates: running mean and mean deviation, gain 1/8. */
	u64 woke_at;
	u64 burst_exec_ns;
	u64 leeway_ns; /* beyond what it declared, see settle_leeway() */
	u64 burst_ns;
	u64 burst_dev_ns;
	u64 interval_ns;
	u64 interval_dev_ns;
	u32 samples;

	u32 met;
	u32 missed;
	u32 tie; /* orders late tasks of the same cost: one recovers, not none */
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
 * Urgency: tier in the top bits, then a time within the tier; smaller is more
 * urgent. One word, so that other CPUs can read it without a lock. They may
 * read it a moment too late; the cost is a preemption that dispatch() undoes by
 * keeping the running task, or one that comes at the next tick.
 */
#define URGENCY_KEY_BITS 60
#define URGENCY_IDLE (~0ULL)
#define URGENCY_NEVER 0ULL

static u64 urgency(u32 tier, u64 key)
{
	return ((u64)tier << URGENCY_KEY_BITS) |
	       (key & ((1ULL << URGENCY_KEY_BITS) - 1));
}

/* Of a turn by the bound: before all but declared jobs. */
#define URGENCY_TURN ((u64)TN_INFERRED << URGENCY_KEY_BITS)

static u32 urgency_tier(u64 urg)
{
	return urg >> URGENCY_KEY_BITS;
}

/* Why a task runs on behalf of the bound. */
enum turn {
	TURN_NONE,
	TURN_QUEUE, /* its queue was due */
	TURN_SINGLE, /* it was, whatever stood before it in its queue */
};

struct cpu_ctx {
	u64 urgency; /* of what it runs */
	bool runs_short_job; /* that is a short job, see TN_SHORT_JOB_DEADLINE */
	bool short_job_next; /* one came, and what was taken last runs next */
	bool preempt_pending; /* somebody pushes aside what it runs */
	u64 hog_since; /* when it began to run a task of the lower tiers */
	u8 bound_turn; /* enum turn: the next task runs on behalf of the bound */
	bool last_turn_holder; /* the last such turn was for one who is stuck */
	bool siblings_first; /* to be looked at before kernel threads then */
	u32 bound_tier; /* the tier that such a turn went to last */
	bool bound_shared; /* the domain's queues are the first to be asked for one */
	bool looked_again; /* for somebody it might run, on its way to idle */
	u64 bound_since; /* when such a turn began, until it is over */
	u64 bound_again; /* no other before this */
	u64 holder_at; /* nor a search for whom a declared task waits for, see stuck.bpf.h */
	u64 turn_until; /* who has such a turn keeps it against all but declared jobs */
	u64 patrol_at; /* when to look for somebody who was passed over */
	u32 patrol_next; /* where to begin */
	u32 patrol_dom; /* which other domain to look at */
	u64 followed; /* the agent's decision that was used last, by its moment */
	u64 trust_until; /* what it runs is out of the order of deadlines until then */
} __attribute__((aligned(64)));

static struct cpu_ctx cpu_ctxs[TN_MAX_CPUS];

/* Written by their own CPU, summed up by userspace through the mmapped bss. */
struct temponet_cpu_stats cpu_stats[TN_MAX_CPUS];

struct temponet_cpu_view cpu_views[TN_MAX_CPUS];

/* 1: this CPU is online. Written by cpu_online() and cpu_offline(). */
u8 cpu_online[TN_MAX_CPUS];
/* How often that has changed since load. */
u32 hotplugs;

static struct cpu_ctx *cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[bounded(cpu, TN_MAX_CPUS)];
}

static struct temponet_cpu_stats *this_stats(void)
{
	return &cpu_stats[bounded(bpf_get_smp_processor_id(), TN_MAX_CPUS)];
}

static u32 dom_of(s32 cpu)
{
	return bounded(cpu_dom[bounded(cpu, TN_MAX_CPUS)], TN_MAX_DOMS);
}

/* Online CPUs of each domain, and domains that have none. */
static u32 dom_online[TN_MAX_DOMS];
static u32 nr_dead_doms;

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

/* Lanes: domains first, then CPUs; a power of two for bounded(). */
#define NR_LANES 2048

static u32 cpu_lane(s32 cpu)
{
	return TN_MAX_DOMS + cpu;
}

static bool pinned(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || is_migration_disabled(p);
}

static struct temponet_class_stats *class_stats(u32 class)
{
	return &this_stats()->class[bounded(class, TN_NR_TIERS)];
}

static u64 since(u64 now, u64 then)
{
	return time_after(now, then) ? now - then : 0;
}

#endif /* __TEMPONET_STATE_BPF_H */
