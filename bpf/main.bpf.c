/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_temponet: a scheduler for work that has deadlines.
 *
 * What it is. Every wake-up releases a job with a deadline: declared by the
 * program (hint) or the administrator (rule), else estimated from the rhythm
 * that the task showed so far. Jobs run earliest deadline first. A job that can
 * no longer make its deadline steps aside into a late queue, so that one
 * overrun does not make everybody late. Tasks that never sleep have no jobs;
 * they share by weight what the jobs leave.
 *
 * What it is good for. Periodic and reactive work with known or steady timing:
 * control loops, audio, video, robotics, and the mixed load around it.
 *
 * Where it would disappoint. It knows one notion of time, the wall clock: a job
 * does not run longer on a slow core of a hybrid CPU in our books. Big machines
 * have one queue per last-level cache and tier, which will be contended long
 * before hundreds of CPUs share one. Batch work gets what is left, fairly, but
 * in slices of a few milliseconds and with no eye for throughput.
 *
 * 1. Tiers. declared, inferred, late, background: in this order, each in queues
 *    of its own (queue.bpf.h). The first two are ordered by deadline, late by cost,
 *    background by when weighted virtual time says it is their turn. When jobs are late: pressure.bpf.h.
 * 2. Jobs (job.bpf.h). Release by wake-up, completion by sleep, the CBS wake-up
 *    rule in between. A task that exceeds its budget is throttled until its next
 *    period (throttle.bpf.h).
 * 3. Parameters (params.bpf.h): hint, rule, estimate.
 * 4. Preemption (preempt.bpf.h): at enqueue (enqueue.bpf.h), of the CPU that runs the least
 *    urgent task. At the tick, for everything that time alone changes: budgets
 *    used up, deadlines passed, queues that waited their bound.
 * 5. The agent (agent, records, board, follow). It is told of declared jobs while they
 *    compete, and says which tasks to keep where not all can be on time, whom to
 *    run next on a CPU, and how it values jobs. Its word changes the order of
 *    waiting jobs, never whether somebody runs.
 * 6. Bound (bound.bpf.h). Whatever stands above a queue, it is served once per
 *    bound: nobody starves, the kernel's watchdog has nothing to find.
 *
 * Nothing here waits for userspace. With the program stopped the scheduler goes
 * on as it is; with it gone the kernel takes over.
 */
#include <scx/common.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

#include "agent.bpf.h"
#include "throttle.bpf.h"
#include "board.bpf.h"
#include "bound.bpf.h"
#include "cgroup.bpf.h"
#include "dispatch.bpf.h"
#include "dump.bpf.h"
#include "enqueue.bpf.h"
#include "fair.bpf.h"
#include "follow.bpf.h"
#include "job.bpf.h"
#include "load.bpf.h"
#include "params.bpf.h"
#include "placement.bpf.h"
#include "preempt.bpf.h"
#include "pressure.bpf.h"
#include "queue.bpf.h"
#include "rcu.bpf.h"
#include "slack.bpf.h"
#include "state.bpf.h"
#include "stuck.bpf.h"
#include "records.bpf.h"
#include "tier.bpf.h"

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
	cpuc->urgency = tctx->bypass_queue ? URGENCY_NEVER : urgency(tier, tier_key(tctx, tier, now));
	cpuc->runs_short_job = short_job(tctx);
	cpuc->short_job_next = false;
	cpuc->preempt_pending = false;
	note_agent_running(p, tctx, cpu, now);
	stats = class_stats(tier);
	stats->runs++;
	publish_view(cpu, p, tctx);

	if (tctx->queued_at) {
		queue = leave_queue(tctx);
		if (queue >= 0 && tier != TN_LATE)
			*queue_served_at(queue) = now;
		wait = since(now, tctx->queued_at);
		tctx->queued_at = 0;
		stats->wait_ns += wait;
		if (wait > stats->wait_max_ns)
			stats->wait_max_ns = wait;
		if (tier > TN_INFERRED)
			cpuc->hog_since = now;
		if (tier == TN_BACKGROUND) {
			/* A task taken from the middle does not show where the clock stands. */
			if (cpuc->bound_turn != TURN_SINGLE && tctx->reader != READER_WAITS)
				advance_vclock(tctx->vtime, now);
			/* Who came here without a wait has nothing to wait on since. */
			grant_turn(tctx);
			scx_bpf_task_set_slice(p, hog_slice(cpu));
		}
	} else if (tctx->placed && !is_cpu_kthread(p) &&
		   outranked_by_declared(cpu, dom_of(cpu), cpuc->urgency)) {
		/* The task was given an idle CPU. A more urgent one that woke up before
		 * it ran saw nothing to preempt. Once only: a task that the kernel puts
		 * back without asking us (it exits, or may not migrate) would be
		 * preempted for ever. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	tctx->placed = false;
	if (tctx->reader == READER_WAITS)
		tctx->reader = READER_RUNS;
	if (concerns_agent(tctx))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE | TN_REC_RUNNING, now);
	cpuc->turn_until = 0;
	if (cpuc->bound_turn)
		begin_turn(p, tctx, cpu);
}

/*
 * A task that does not sleep meets its new hint, or the loss of it, here. The
 * look-up is cheap, but not for every tick.
 */
static void refresh_running(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	bool declared = tctx->base == TN_DECLARED;

	if (since(now, tctx->params_at) < TN_PARAMS_REFRESH_RUNNING)
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
	/* Nobody's turn is cut short at once for somebody else's. */
	bool begun = turn || (tier == TN_BACKGROUND && turn_unfinished(tctx));

	if ((tier != TN_DECLARED || !trusted(cpu, now)) && outranked(cpu, dom, cpuc->urgency))
		return TN_RESCHED_URGENT;
	if (!begun && bound_due(cpu, dom, now))
		return TN_RESCHED_BOUND;
	if (replenish_due(dom, now) || replenish_due(cpu_lane(cpu), now))
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
		/* The preemption is decided in dispatch(). */
		end_slice(p, TN_RESCHED_PENDING);
		return;
	}
	now = scx_bpf_now();
	turn = time_before(now, cpuc->turn_until);
	deadline = tctx->deadline_at;
	period = tctx->period_ns;
	account(p, tctx);
	refresh_running(p, tctx, now);
	/* It may run on for long, as something else than what was told of, or untold. */
	if ((deadline != tctx->deadline_at || period != tctx->period_ns || short_job(tctx)) &&
	    concerns_agent(tctx))
		emit_change(p, tctx, cpu, TN_REC_RUNNABLE | TN_REC_RUNNING, now);
	tier = task_tier(tctx, cpu, now);
	tctx->run_tier = tier;
	cpuc->runs_short_job = short_job(tctx);
	if (tctx->bypass_queue && !agent_spent) {
		/* One that was to push it aside may have been kept. */
		cpuc->urgency = URGENCY_NEVER;
		if (agent_must_yield(cpu, dom, now))
			end_slice(p, TN_RESCHED_AGENT);
		return;
	}
	if (tier == TN_BACKGROUND)
		weigh_hog(p, tctx);
	if (tier == TN_LATE) {
		note_late_run(dom, now);
		note_late_run(cpu_lane(cpu), now);
	}
	cpuc->urgency = urgency(tier, tier_key(tctx, tier, now));
	if (turn)
		cpuc->urgency = MIN(cpuc->urgency, URGENCY_TURN);
	why = deadline != tctx->deadline_at ? TN_RESCHED_BUDGET :
					      why_resched(tctx, cpu, tier, turn, now);
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
	tctx->on_cpu = false;
	note_agent_stopped(p);
	tctx->bypass_queue = false;
	note_reader(p, tctx, runnable);
	if (runnable) {
		/* Whose slice is used up is told of when it is queued again, if it is. */
		if (concerns_agent(tctx) && (p->scx.slice || is_exiting(p) || is_migration_disabled(p)))
			emit_change(p, tctx, tctx->cpu, TN_REC_RUNNABLE, scx_bpf_now());
		return;
	}
	unweigh_hog(p, tctx);
	tctx->turn_left = 0;
	tctx->awake_ns = 0;
	/* The job is done, unless the next wake-up finds that it goes on. */
	tctx->slept_at = scx_bpf_now();
	tctx->sleep = ASLEEP;
	note_stuck(p, tctx, tctx->slept_at);
	if (!tctx->stuck)
		note_end(tctx, tctx->slept_at);
	emit_end(p, tctx, tctx->slept_at);
}

/*
 * sched_yield(): a declared task is done with its job. What it runs before its next period
 * begins, it runs throttled. A second yield before that finds no job to end.
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

/* The idle loop has nothing to lose. */
void BPF_STRUCT_OPS(temponet_update_idle, s32 cpu, bool idle)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 dom = dom_of(cpu);

	note_drained(dom);
	note_drained(cpu_lane(cpu));
	if (!idle)
		return;
	cpuc->urgency = URGENCY_IDLE;
	cpuc->runs_short_job = false;
	cpu_views[bounded(cpu, TN_MAX_CPUS)].pid = 0;
	/* Who was queued since it looked saw a busy CPU. Once per idle time: what
	 * cannot come here after all would keep it looking. */
	if (!cpuc->looked_again &&
	    (lane_has_work_for(dom, cpu) || lane_has_work_for(cpu_lane(cpu), cpu))) {
		cpuc->looked_again = true;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

/* A real-time task took the CPU: what was to run here runs elsewhere. */
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
	tctx->vtime = vclock;
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
	unweigh_hog(p, tctx);
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

	bpf_for(i, 0, nr_doms) {
		err = create_queues(i);
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
	       .cgroup_set_weight	= (void *)temponet_cgroup_set_weight,
	       .cgroup_move		= (void *)temponet_cgroup_move,
	       .init_task		= (void *)temponet_init_task,
	       .enable			= (void *)temponet_enable,
	       .disable			= (void *)temponet_disable,
	       .init			= (void *)temponet_init,
	       .exit			= (void *)temponet_exit,
	       .timeout_ms		= 20000,
	       .name			= "temponet");
