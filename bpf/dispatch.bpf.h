/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dispatch: which task a CPU runs next. temponet_dispatch() reads in the order in which the sources
 * are asked. Counts of waiting tasks come first, so that a source without tasks costs nothing.
 */
#ifndef __TEMPONET_DISPATCH_BPF_H
#define __TEMPONET_DISPATCH_BPF_H

#include "agent.bpf.h"
#include "throttle.bpf.h"
#include "bound.bpf.h"
#include "fair.bpf.h"
#include "follow.bpf.h"
#include "job.bpf.h"
#include "placement.bpf.h"
#include "pressure.bpf.h"
#include "queue.bpf.h"
#include "quota.bpf.h"
#include "serve.bpf.h"
#include "shed.bpf.h"
#include "state.bpf.h"
#include "take.bpf.h"
#include "records.bpf.h"
#include "tier.bpf.h"

/* A declared or late job runs on. Notes whether others that compete with it wait in this lane. */
static void note_contended(u32 lane_id, u64 now)
{
	struct pressure *pr = pressure(lane_id);

	if (pr->late_jobs[LATE_DECLARED] && lane_claims(lane(lane_id)))
		note_time(&pr->contended_at, now);
}

void BPF_STRUCT_OPS(temponet_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 dom = dom_of(cpu), tier;
	struct lane *shared = lane(dom), *own = lane(cpu_lane(cpu));
	u64 now = 0, prev_urg = URGENCY_IDLE, job = 0;
	u64 declared, inferred, late, lower;
	struct task_ctx *tctx = NULL;
	bool moved;
	int served;

	/* A CPU that dispatches is online. Going offline may fail half-way without a report. */
	if (!is_online(cpu))
		note_online(cpu);
	if (lane_replenish_at[bounded(dom, NR_LANES)] ||
	    lane_replenish_at[bounded(cpu_lane(cpu), NR_LANES)]) {
		now = scx_bpf_now();
		if (replenish_due(dom, now))
			replenish(dom, cpu, now);
		if (replenish_due(cpu_lane(cpu), now))
			replenish(cpu_lane(cpu), cpu, now);
	}
	if (unpark_at) {
		now = now ?: scx_bpf_now();
		if (unpark_due(now))
			unpark(cpu, now);
	}
	if (cpu_ctx(cpu)->lend_pid) {
		now = now ?: scx_bpf_now();
		move_queued(cpu_ctx(cpu)->lend_queue, TN_DECLARED, cpu_ctx(cpu)->lend_pid, now);
		cpu_ctx(cpu)->lend_pid = 0;
	}
	declared = lane_len(shared, TN_DECLARED) | lane_len(own, TN_DECLARED);
	inferred = lane_len(shared, TN_INFERRED) | lane_len(own, TN_INFERRED);
	late = lane_len(shared, TN_LATE) | lane_len(own, TN_LATE);
	lower = late | lane_len(shared, TN_BACKGROUND) | lane_len(own, TN_BACKGROUND);
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tctx = task_ctx(prev);
		if (tctx) {
			now = scx_bpf_now();
			job = tctx->job;
			account(prev, tctx);
			/* enqueue() parks it: the kernel calls that even for the last task. */
			if (must_park(prev, tctx, now))
				tctx = NULL;
			else
				prev_urg = task_urgency(tctx, cpu, now);
		}
	}

	if (agent_yielded &&
	    take_yielded(cpu, dom, tctx && short_job(tctx), now ?: scx_bpf_now())) {
		this_stats()->dispatches[TN_SRC_SELF]++;
		return;
	}

	/* The bound is spared where only inferred jobs wait and no task wants to go on. That is the
	 * common case in a rush of short wake-ups. */
	if (declared || lower || tctx) {
		now = now ?: scx_bpf_now();
		if (serve_bound(cpu, dom, now)) {
			this_stats()->dispatches[TN_SRC_BOUND]++;
			return;
		}
	}

	if (!lane_jobs(shared))
		note_drained(dom);
	if (!lane_jobs(own))
		note_drained(cpu_lane(cpu));
	if (declared && overloaded(cpu, true, now)) {
		shed(cpu, dom, urgency_tier(prev_urg) == TN_DECLARED ? tctx : NULL, now);
		if (tctx)
			prev_urg = task_urgency(tctx, cpu, now);
	}

	cpu_ctx(cpu)->preempt_pending = false;
	cpu_ctx(cpu)->trust_until = 0;
	cpu_ctx(cpu)->short_job_next = tctx && tctx->bypass_queue &&
				   (short_job_first(dom) || short_job_first(cpu_lane(cpu)));
	served = SERVED_NONE;
	tier = TN_DECLARED;
	if (declared && best_level != TN_LEVEL_EDF)
		served = follow(cpu, dom, prev_urg, tctx ? tctx->pid : 0, now);
	if (served == SERVED_NONE && (declared || nr_doms > 1 || tctx))
		served = serve_tier(cpu, dom, TN_DECLARED, prev_urg);
	if (served == SERVED_NONE && (inferred || nr_doms > 1 || tctx)) {
		tier = TN_INFERRED;
		served = serve_tier(cpu, dom, TN_INFERRED, prev_urg);
	}
	if (served == SERVED_NONE && (late || nr_doms > 1 || tctx)) {
		tier = TN_LATE;
		served = serve_tier(cpu, dom, TN_LATE, prev_urg);
	}
	if (served == SERVED_NONE) {
		tier = TN_BACKGROUND;
		served = serve_tier(cpu, dom, TN_BACKGROUND, prev_urg);
	}

	moved = served == SERVED_MOVED || served == SERVED_FOLLOWED;
	if (!moved)
		tier = tctx ? task_tier(tctx, cpu, now) : TN_BACKGROUND;
	/* A task that was moved is still counted as waiting, until it runs. A task without a
	 * declared deadline does not contend. */
	if ((tier == TN_DECLARED || tier == TN_LATE) &&
	    lane_claims(shared) + lane_claims(own) > moved) {
		note_contended(dom, now);
		note_contended(cpu_lane(cpu), now);
	}
	if (served == SERVED_MOVED) {
		this_stats()->dispatches[TN_SRC_QUEUE]++;
	} else if (served == SERVED_FOLLOWED) {
		return;
	} else if (tctx && prev) {
		/* A task of the tier goes on, so the tier is served and its queues are not due. */
		if (tier != TN_LATE) {
			shared->served_at[bounded(tier, TN_NR_TIERS)] = now;
			own->served_at[bounded(tier, TN_NR_TIERS)] = now;
		}
		/* It is its turn once more. */
		if (tier == TN_BACKGROUND)
			advance_clocks(tctx->group, tctx->vtime);
		scx_bpf_task_set_slice(prev, tier == TN_BACKGROUND ? hog_slice(tctx, cpu) :
								     tier_slice(tier));
		if (job != tctx->job && concerns_agent(tctx))
			emit_change(prev, tctx, cpu, TN_REC_RUNNABLE | TN_REC_RUNNING, now);
	}
}

#endif /* __TEMPONET_DISPATCH_BPF_H */
