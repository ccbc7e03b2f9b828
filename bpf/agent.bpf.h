/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent as a task: which thread it is, and its privileges. The agent bypasses the queues, or it
 * would wait behind the work that it schedules. It pays for that from a credit of CPU time. It
 * yields to short jobs, because no decision can come in time for them. That brought the 99th
 * percentile of wake-ups in `latency-overload` from 374 to 65 us (docs/measurements/agent.md).
 */
#ifndef __TEMPONET_AGENT_BPF_H
#define __TEMPONET_AGENT_BPF_H

#include "board.bpf.h"
#include "queue.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"

/* The agent's thread that decides, in the initial pid namespace. */
u32 agent_tid;
u32 agent_tgid;
/* The share of a CPU that the agent may use past the queues, per mille. */
const volatile u64 agent_permille = 100;

/*
 * The agent's credit: a bucket of CPU time that fills at its share and holds a second's worth. An
 * agent that has emptied it is a task like others until the bucket is half full. Otherwise an agent
 * that never sleeps would bypass the queues again and again, for a moment each time.
 */
static u64 agent_credit_ns = 100 * TN_MSEC;
static u64 agent_credit_at;
static bool agent_spent;
/* 1 + the lane that the agent waits in, 0: the agent is not queued. */
static u32 agent_lane;
/* The agent is queued only until short jobs have run. */
static bool agent_yielded;
/* When the agent last woke up, and 1 + the CPU where it bypassed the queues. */
static u64 agent_woken_at;
static u32 agent_cpu;

/* The thread that decides. The agent's other threads have no privileges. */
static bool is_agent(const struct task_struct *p)
{
	return agent_tid && (u32)p->pid == agent_tid && (u32)p->tgid == agent_tgid;
}

/* The agent runs this on the thread that decides. In a pid namespace of its own it does not know
 * its numbers in the initial one. */
SEC("syscall")
int introduce_agent(void *ctx)
{
	u64 id = bpf_get_current_pid_tgid();

	agent_tgid = id >> 32;
	agent_tid = id;
	return 0;
}

static u64 agent_credit_max(void)
{
	return MAX(agent_permille * TN_MSEC, 10 * TN_MSEC);
}

static u64 agent_credit(u64 now)
{
	u64 gained = MIN(since(now, agent_credit_at), 10000 * (u64)TN_MSEC) * agent_permille / 1000;

	return MIN(agent_credit_ns + gained, agent_credit_max());
}

/* Refills the credit, and says whether the agent may bypass the queues now. */
static bool agent_may_bypass(u64 now)
{
	agent_credit_ns = agent_credit(now);
	agent_credit_at = now;
	if (agent_spent && agent_credit_ns < agent_credit_max() / 2)
		return false;
	agent_spent = !agent_credit_ns;
	return !agent_spent;
}

static void charge_agent(u64 ran)
{
	agent_credit_ns -= MIN(ran, agent_credit_ns);
	if (!agent_credit_ns)
		agent_spent = true;
}

/* The agent yields to short jobs only for a while after its wake-up, or it might never run. */
static bool agent_yields(u64 now)
{
	return since(now, agent_woken_at) < TN_AGENT_YIELDS;
}

/* Does the agent, running on @cpu, have to make room for a short job that would be next there? */
static bool agent_must_yield(s32 cpu, u32 dom, u64 now)
{
	return agent_yields(now) && (short_job_first(dom) || short_job_first(cpu_lane(cpu)));
}

/* The CPU where the agent makes room for @p, if that is a short job and would be next there; else
 * -1. */
static s32 agent_cpu_for_short_job(struct task_struct *p, u64 urg, u64 now)
{
	s32 cpu = (s32)agent_cpu - 1;
	struct task_ctx *tctx;

	if (cpu < 0 || !agent_yields(now) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return -1;
	tctx = task_ctx(p);
	return tctx && short_job(tctx) && !outranked_by_declared(cpu, dom_of(cpu), urg) ? cpu : -1;
}

/*
 * Does the agent wait in a lane of @cpu like any task, with credit again? Left there it would be
 * silent for seconds. Its verdicts would expire, the tasks that it gave up would come back, and all
 * would be late.
 */
static bool agent_due(s32 cpu, u32 dom, u64 now)
{
	u32 at = agent_lane;

	return at && !agent_yielded && (at == dom + 1 || at == cpu_lane(cpu) + 1) &&
	       agent_credit(now) >= agent_credit_max() / 2;
}

/* The agent has yielded to short jobs. Are they done, so that @cpu may go on with the agent? */
static bool yielded_due(s32 cpu, u32 dom, bool runs_short_job, u64 now)
{
	u32 at = agent_lane;

	return agent_yielded && (at == dom + 1 || at == cpu_lane(cpu) + 1) &&
	       !(agent_yields(now) && (runs_short_job || short_job_first(dom) ||
				       short_job_first(cpu_lane(cpu))));
}

/* The functions below are called for every task. All but note_agent_woken() check that it is the
 * agent. */

static void note_agent_woken(u64 now)
{
	agent_woken_at = now;
}

static void note_agent_queued(const struct task_struct *p, u32 lane_id)
{
	if (is_agent(p))
		agent_lane = lane_id + 1;
}

static __always_inline void note_agent_running(const struct task_struct *p,
					       const struct task_ctx *tctx, s32 cpu, u64 now)
{
	if (is_agent(p)) {
		agent_yielded = false;
		agent_lane = 0;
		if (tctx->bypass_queue) {
			agent_cpu = cpu + 1;
			/* A short job queued just before this found no agent to preempt. */
			if (agent_yields(now) &&
			    (short_job_first(dom_of(cpu)) || short_job_first(cpu_lane(cpu))))
				scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		}
	}
}

static void note_agent_stopped(const struct task_struct *p)
{
	if (is_agent(p))
		agent_cpu = 0;
}

static void note_agent_left(const struct task_struct *p)
{
	if (is_agent(p)) {
		agent_yielded = false;
		agent_lane = 0;
	}
}

/* Puts the agent onto @cpu past the queues, unless a short job is in the way. */
static __always_inline bool agent_bypass_queue(struct task_struct *p, struct task_ctx *tctx,
					       s32 cpu, u64 enq_flags, u64 now)
{
	/* The agent preempts when it wakes up. Preempted itself by a kernel thread it goes to the
	 * head instead: SCX_ENQ_PREEMPT would then preempt the agent again. */
	bool wakes = enq_flags & SCX_ENQ_WAKEUP;
	u64 how = wakes ? SCX_ENQ_PREEMPT : SCX_ENQ_HEAD;

	/* The agent must not wait in the declared queue: only the lower tiers are searched for it
	 * (take_lower()). */
	agent_yielded = agent_yields(now) && tctx->run_tier != TN_DECLARED &&
			((wakes && cpu_ctx(cpu)->runs_short_job) || cpu_ctx(cpu)->short_job_next ||
			 short_job_first(dom_of(cpu)) || short_job_first(cpu_lane(cpu)));
	if (agent_yielded)
		return false;
	this_stats()->dispatches[TN_SRC_SELF]++;
	tctx->bypass_queue = true;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, TN_SLICE_JOB, enq_flags | how);
	return true;
}

#endif /* __TEMPONET_AGENT_BPF_H */
