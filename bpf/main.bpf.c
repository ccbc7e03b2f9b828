/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_temponet: a scheduler for work that has deadlines.
 *
 * What it is. Every wake-up releases a job with a deadline: declared by the program (hint) or the
 * administrator (rule), else estimated from the rhythm that the task showed so far. Jobs run
 * earliest deadline first. In overload a job that can no longer meet its deadline is given up: it
 * goes on in a late queue, so that it does not make the others late too. Tasks that never sleep
 * have no jobs; they share by weight what the jobs leave.
 *
 * What it is good for. Periodic and reactive work with known or steady timing: control loops,
 * audio, video, robotics, and the mixed load around it.
 *
 * Where it would disappoint. Big machines have one queue per last-level cache and tier, which will
 * be contended long before hundreds of CPUs share one. Batch work gets what is left, fairly, but in
 * slices of a few milliseconds and with no eye for throughput.
 *
 * 1. Parameters (params.bpf.h): a task's hint, else the first rule that matches, else an
 *    estimate. The declared ones add up to a load (load.bpf.h), which tells whether there is
 *    anything to decide at all.
 * 2. Jobs (job.bpf.h). A wake-up releases a job, going to sleep completes it, and the CBS wake-up
 *    rule tells a continued job from a new one. Each job has a budget (budget.bpf.h), in units of
 *    work (work.bpf.h), and a slack (slack.bpf.h).
 * 3. Tiers (tier.bpf.h): declared, inferred, late, background, served in this order. The first two
 *    are ordered by deadline, late by cost, background by when a task's share allows its next turn
 *    (fair.bpf.h, group.bpf.h, lineage.bpf.h). Undeclared work with a rhythm keeps it
 *    (rhythm.bpf.h). A declared task that exceeds its budget is throttled until its next period
 *    (throttle.bpf.h). Jobs are moved to the late tier only in overload (pressure.bpf.h).
 * 4. Enqueue (enqueue.bpf.h): onto an idle CPU, else into the queue of the task's tier and lane
 *    (queue.bpf.h). An urgent job then preempts the CPU that runs the least urgent task
 *    (preempt.bpf.h).
 * 5. Dispatch (dispatch.bpf.h) asks in this order: throttled tasks whose period has begun, the
 *    agent's thread where it made room, the bound, the shedding of jobs in overload (shed.bpf.h),
 *    the agent's decision (follow.bpf.h), then the tiers (serve.bpf.h).
 * 6. The tick (below) ends a slice for what time alone changes: budgets used up, deadlines passed,
 *    queues that have waited their bound.
 * 7. The agent. It reads records of declared jobs while they compete (records.bpf.h). It writes
 *    onto a board (board.bpf.h) which tasks to keep where not all can be on time, which task a CPU
 *    runs next, and how it values jobs. Its word changes the order of waiting jobs, never whether
 *    a task runs. Its own thread bypasses the queues within a budget (agent.bpf.h).
 * 8. The bound (bound.bpf.h, take.bpf.h). Every queue and every task in it has a turn in time,
 *    whatever stands above it: nothing starves, and the kernel's watchdog has nothing to find.
 *    Tasks that hold up a declared task (stuck.bpf.h, lend.bpf.h) or the whole kernel (rcu.bpf.h)
 *    have theirs sooner. cpu.max holds for all (quota.bpf.h).
 * 9. CPUs that come and go (placement.bpf.h, requeue.bpf.h), and what a stall report says
 *    (dump.bpf.h). The books are in state.bpf.h, what is shared with userspace in intf.h.
 *
 * Nothing here waits for userspace. If the program is stopped, the scheduler goes on without it. If
 * the program ends, the kernel's own scheduler takes over.
 */
#include <scx/common.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

#include "agent.bpf.h"
#include "throttle.bpf.h"
#include "board.bpf.h"
#include "bound.bpf.h"
#include "dispatch.bpf.h"
#include "dump.bpf.h"
#include "enqueue.bpf.h"
#include "fair.bpf.h"
#include "lend.bpf.h"
#include "follow.bpf.h"
#include "group.bpf.h"
#include "job.bpf.h"
#include "lineage.bpf.h"
#include "load.bpf.h"
#include "params.bpf.h"
#include "placement.bpf.h"
#include "preempt.bpf.h"
#include "pressure.bpf.h"
#include "queue.bpf.h"
#include "quota.bpf.h"
#include "rcu.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"
#include "supply.bpf.h"
#include "records.bpf.h"
#include "tier.bpf.h"
#include "work.bpf.h"

/* What @cpu runs, for the monitor. Only userspace reads it. */
static void publish_view(s32 cpu, const struct task_struct *p, const struct task_ctx *tctx)
{
	struct temponet_cpu_view *view = &cpu_views[bounded(cpu, TN_MAX_CPUS)];

	view->pid = p->pid;
	view->tier = tctx->run_tier;
	view->deadline_at = tctx->open ? tctx->deadline_at : 0;
	__builtin_memcpy(view->comm, p->comm, sizeof(view->comm));
}

void BPF_STRUCT_OPS(temponet_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	struct temponet_class_stats *stats;
	s32 cpu = bpf_get_smp_processor_id(), queue;
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 now = scx_bpf_now(), wait;
	u32 tier;

	if (!tctx)
		return;
	tctx->cpu = cpu;
	tctx->on_cpu = true;
	tier = tctx->run_tier;
	cpuc->looked_again = false;
	cpuc->urgency = tctx->bypass_queue ? URGENCY_NEVER :
					     urgency(tier, tier_key(tctx, tier, now));
	cpuc->runs_short_job = short_job(tctx);
	cpuc->short_job_next = false;
	cpuc->preempt_pending = false;
	note_agent_running(p, tctx, cpu, now);
	note_supply_start(cpu, now);
	stats = class_stats(tier);
	stats->runs++;
	publish_view(cpu, p, tctx);

	if (tctx->queued_at) {
		queue = leave_queue(tctx);
		if (queue >= 0 && tier != TN_LATE && !tctx->rcu)
			*queue_served_at(queue) = now;
		wait = since(now, tctx->queued_at);
		tctx->queued_at = 0;
		stats->wait_ns += wait;
		if (wait > stats->wait_max_ns)
			stats->wait_max_ns = wait;
		if (tier > TN_INFERRED)
			cpuc->hog_since = now;
		if (tier == TN_BACKGROUND) {
			/* A task taken from the middle of the queue may be far ahead of the others
			 * in virtual time, so it does not move the clock. */
			if (cpuc->bound_turn != TURN_SINGLE && tctx->reader != READER_WAITS)
				advance_clocks(tctx->group, tctx->vtime);
			/* Only a task that has waited is granted a turn: one placed on an idle CPU
			 * has no waiting time to keep when it is cut short. */
			grant_turn(tctx);
			if (cpuc->bound_turn == TURN_NONE)
				begin_audition(p, tctx, cpu, now);
			scx_bpf_task_set_slice(p, hog_slice(tctx, cpu));
		}
	} else if (tctx->placed && !is_cpu_kthread(p) &&
		   outranked_by_declared(cpu, dom_of(cpu), cpuc->urgency)) {
		/* The task was given an idle CPU. A more urgent one that woke up before it ran saw
		 * nothing to preempt. The check is made once per placement: a task that the kernel
		 * puts back without a call of enqueue() (it exits, or may not migrate) would be
		 * preempted for ever. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	tctx->placed = false;
	/* The quota was used up while the task waited: it gives the CPU back (quota.bpf.h). */
	if (must_park(p, tctx, now))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	if (tctx->reader == READER_WAITS)
		tctx->reader = READER_RUNS;
	if (concerns_agent(tctx))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE | TN_REC_RUNNING, now);
	cpuc->turn_until = 0;
	if (cpuc->bound_turn)
		begin_turn(p, tctx, cpu);
}

/*
 * Parameters are looked up at wake-ups. A task that does not sleep gets its new hint, or loses its
 * old one, here. The look-up is cheap, but not cheap enough for every tick.
 */
static void refresh_running(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool declared = tctx->base == TN_DECLARED;

	if (hints_seen(tctx) && since(now, tctx->params_at) < TN_PARAMS_REFRESH_RUNNING)
		return;
	if (!refresh_declared(p, tctx, now) && declared)
		infer(p, tctx);
	if (declared == (tctx->base == TN_DECLARED))
		return;
	tctx->open = false;
	release_job(tctx, now);
}

/* Why @cpu should look for another task than @tctx, which runs there in @tier. */
static enum temponet_resched why_resched(const struct task_ctx *tctx, s32 cpu, u32 tier, bool turn,
					 u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 dom = dom_of(cpu);
	/* A turn by the bound, and the first half millisecond of a hog's turn, are not cut short
	 * for another task's turn. Among 2,000 hogs the longest response fell from 3.1 to 1.3 s
	 * with this (docs/measurements/scheduler.md). */
	bool begun = turn || (tier == TN_BACKGROUND && turn_unfinished(tctx));

	if ((tier != TN_DECLARED || !trusted(cpu, now)) && outranked(cpu, dom, cpuc->urgency))
		return TN_RESCHED_URGENT;
	if (!begun && bound_due(cpu, dom, now))
		return TN_RESCHED_BOUND;
	if (replenish_due(dom, now) || replenish_due(cpu_lane(cpu), now) || unpark_due(now))
		return TN_RESCHED_REPLENISHED;
	if (yielded_due(cpu, dom, cpuc->runs_short_job, now))
		return TN_RESCHED_AGENT;
	if (tier != TN_DECLARED && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu))
		return TN_RESCHED_LOCAL;
	return TN_RESCHED_NOT;
}

static void end_slice(struct task_struct *p, enum temponet_resched why)
{
	this_stats()->resched[bounded(why, TN_NR_RESCHEDS)]++;
	scx_bpf_task_set_slice(p, 0);
}

/* The tick finds what time alone changes: budgets, deadlines, bounds. */
void BPF_STRUCT_OPS(temponet_tick, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 dom = dom_of(cpu), tier;
	u64 now, deadline, period;
	enum temponet_resched why;
	bool turn;

	if (!tctx)
		return;
	if (cpuc->preempt_pending) {
		/* dispatch() decides on the preemption, so the tick asks nothing more. */
		end_slice(p, TN_RESCHED_PENDING);
		return;
	}
	now = scx_bpf_now();
	turn = time_before(now, cpuc->turn_until);
	deadline = tctx->deadline_at;
	period = tctx->period_ns;
	account(p, tctx);
	refresh_running(p, tctx, now);
	/* The agent must hear of a new deadline or period now: the task may run on for long. A
	 * short job that still runs at a tick may not have been reported at all (soon_over()). */
	if ((deadline != tctx->deadline_at || period != tctx->period_ns || short_job(tctx)) &&
	    concerns_agent(tctx))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE | TN_REC_RUNNING, now);
	tier = task_tier(tctx, cpu, now);
	tctx->run_tier = tier;
	cpuc->runs_short_job = short_job(tctx);
	if (tctx->bypass_queue && !agent_spent) {
		/* preempt() may have written a short job's urgency here, and dispatch() have kept
		 * the agent all the same. */
		cpuc->urgency = URGENCY_NEVER;
		if (agent_must_yield(cpu, dom, now))
			end_slice(p, TN_RESCHED_AGENT);
		return;
	}
	note_tier(p, tctx, cpu, tier);
	if (tier == TN_LATE) {
		note_late_run(dom, now);
		note_late_run(cpu_lane(cpu), now);
	}
	cpuc->urgency = urgency(tier, tier_key(tctx, tier, now));
	if (turn)
		cpuc->urgency = MIN(cpuc->urgency, URGENCY_TURN);
	if (must_park(p, tctx, now))
		why = TN_RESCHED_QUOTA;
	else
		why = deadline != tctx->deadline_at ? TN_RESCHED_BUDGET :
						      why_resched(tctx, cpu, tier, turn, now);
	note_use(cpu, true, now);
	ask_clock(cpu, tier == TN_DECLARED && little_slack(tctx, now));
	if (why)
		end_slice(p, why);
	else
		wake_idle_for_waiting(dom);
}

void BPF_STRUCT_OPS(temponet_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	account(p, tctx);
	note_supply_stop(tctx->cpu, tctx->run_tier, runnable);
	tctx->on_cpu = false;
	note_agent_stopped(p);
	tctx->bypass_queue = false;
	note_reader(p, tctx, runnable);
	if (runnable) {
		/* The kernel puts back a task with slice left, one that exits and one that may not
		 * migrate without a call of enqueue(). Any other is reported when it is queued. */
		if (concerns_agent(tctx) &&
		    (p->scx.slice || is_exiting(p) || is_migration_disabled(p)))
			emit_change(p, tctx, tctx->cpu, TN_REC_RUNNABLE, scx_bpf_now());
		return;
	}
	leave_shares(tctx);
	end_audition(tctx);
	tctx->turn_left = 0;
	tctx->awake_ns = 0;
	/* The job is done, unless the next wake-up continues it (wake_job()). */
	tctx->slept_at = scx_bpf_now();
	tctx->sleep = ASLEEP;
	note_stuck(p, tctx, tctx->slept_at);
	if (tctx->base == TN_DECLARED && tctx->open && remaining(tctx))
		lend_deadline(p, tctx->cpu);
	if (!tctx->stuck)
		note_end(tctx, tctx->slept_at);
	emit_end(p, tctx, tctx->slept_at);
}

/*
 * sched_yield() completes a declared task's job. Until its next period begins the task runs
 * throttled. A second yield before that finds no released job and completes nothing.
 */
bool BPF_STRUCT_OPS(temponet_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx;
	u64 now;

	if (to)
		return false;
	tctx = task_ctx(from);
	if (tctx) {
		now = scx_bpf_now();
		account(from, tctx);
		if (tctx->base == TN_DECLARED && tctx->open && !time_after(tctx->release_at, now))
			roll_job(from, tctx, tctx->exec_ns, now);
	}
	scx_bpf_task_set_slice(from, 0);
	return true;
}

/* An idle CPU has the least urgency: any job may take it. */
void BPF_STRUCT_OPS(temponet_update_idle, s32 cpu, bool idle)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 dom = dom_of(cpu);

	note_drained(dom);
	note_drained(cpu_lane(cpu));
	if (!idle) {
		note_use(cpu, false, scx_bpf_now());
		ask_clock(cpu, false);
		return;
	}
	note_use(cpu, true, scx_bpf_now());
	cpuc->urgency = URGENCY_IDLE;
	cpuc->runs_short_job = false;
	cpu_views[bounded(cpu, TN_MAX_CPUS)].pid = 0;
	/* A task that was queued since this CPU looked at the queues saw a busy CPU and did not
	 * wake it. So the CPU looks again, once per idle time: a task that cannot run here after
	 * all would keep it looking for ever. */
	if (!cpuc->looked_again &&
	    (lane_has_work_for(dom, cpu) || lane_has_work_for(cpu_lane(cpu), cpu))) {
		cpuc->looked_again = true;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

/* A real-time task took the CPU. Tasks of its local queue are enqueued again, for other CPUs. */
void BPF_STRUCT_OPS(temponet_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	cpu_ctx(cpu)->urgency = URGENCY_NEVER;
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(temponet_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	cpu_ctx(cpu)->urgency = URGENCY_IDLE;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(temponet_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->sleep = NEWBORN;
	tctx->base = TN_INFERRED;
	begin_share(p, tctx, args);
	tctx->pid = p->pid;
	tctx->tie = p->pid & 1023;
	tctx->rcu = is_rcu(p);
	tctx->accounted_ns = p->se.sum_exec_runtime;
	return 0;
}

/* The task enters this class: CPU time that it used in another is not charged. */
void BPF_STRUCT_OPS(temponet_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->accounted_ns = p->se.sum_exec_runtime;
}

/* The task leaves for another class, or exits. */
void BPF_STRUCT_OPS(temponet_disable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	leave_queue(tctx);
	leave_park(tctx, scx_bpf_now());
	leave_shares(tctx);
	end_audition(tctx);
	leave_grid(tctx);
	claim_load(p, tctx, false);
	tctx->params_at = 0;
	note_agent_left(p);
	note_unstuck(tctx);
	tctx->queued_at = 0;
	emit_change(p, tctx, tctx->cpu, TN_REC_EXITED, scx_bpf_now());
	if (tctx->sleep == ASLEEP)
		complete_job(p, tctx, tctx->slept_at);
	tctx->open = false;
	tctx->sleep = NEWBORN;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(temponet_init)
{
	u32 i;
	int err;

	err = create_park();
	if (err)
		return err;
	bpf_for(i, 0, nr_doms) {
		err = create_queues(i) ?: create_dom_mask(i);
		if (err)
			return err;
	}
	bpf_for(i, 0, nr_cpus) {
		if (i >= TN_MAX_CPUS)
			break;
		err = create_queues(cpu_lane(cpu_order[i]));
		if (err)
			return err;
		cpu_known[bounded(cpu_order[i], TN_MAX_CPUS)] = true;
		cpu_online[bounded(cpu_order[i], TN_MAX_CPUS)] = true;
		dom_online[dom_of(cpu_order[i])]++;
		note_capacity(++nr_online);
		mark_in_dom(cpu_order[i], true);
	}
	return 0;
}

void BPF_STRUCT_OPS(temponet_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(temponet_ops,
	       .select_cpu		= (void *)temponet_select_cpu,
	       .enqueue			= (void *)temponet_enqueue,
	       .dispatch		= (void *)temponet_dispatch,
	       .running			= (void *)temponet_running,
	       .tick			= (void *)temponet_tick,
	       .stopping		= (void *)temponet_stopping,
	       .update_idle		= (void *)temponet_update_idle,
	       .cpu_release		= (void *)temponet_cpu_release,
	       .cpu_acquire		= (void *)temponet_cpu_acquire,
	       .cpu_online		= (void *)temponet_cpu_online,
	       .cpu_offline		= (void *)temponet_cpu_offline,
	       .yield			= (void *)temponet_yield,
	       .dump			= (void *)temponet_dump,
	       .dump_cpu		= (void *)temponet_dump_cpu,
	       .dump_task		= (void *)temponet_dump_task,
	       .cgroup_init		= (void *)temponet_cgroup_init,
	       .cgroup_exit		= (void *)temponet_cgroup_exit,
	       .cgroup_set_weight	= (void *)temponet_cgroup_set_weight,
	       .cgroup_move		= (void *)temponet_cgroup_move,
	       .init_task		= (void *)temponet_init_task,
	       .enable			= (void *)temponet_enable,
	       .disable			= (void *)temponet_disable,
	       .init			= (void *)temponet_init,
	       .exit			= (void *)temponet_exit,
	       .timeout_ms		= 20000,
	       .name			= "temponet");
