/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets are work, not time. A declared runtime is what a job takes on the fastest CPU at its full
 * clock, as for SCHED_DEADLINE. On a smaller core, or at a lower clock, a job uses its budget up
 * more slowly.
 *
 * Where every declared task runs longer than it declared, by at least some factor, the fault is not
 * with one of them: the declarations were made on a faster machine, or the host takes its part. Then
 * all declarations are read with that factor.
 */
#ifndef __TEMPONET_WORK_BPF_H
#define __TEMPONET_WORK_BPF_H

#include "state.bpf.h"

#define PERF_ONE SCX_CPUPERF_ONE

/* For tests: the capacity of all CPUs, of 1024; 0: the real one. */
const volatile u32 test_capacity;
/* 1: the scheduler asks for clock frequencies. */
const volatile u32 set_cpuperf = 1;

/* What @ran on @cpu comes to on the fastest CPU at its full clock. */
static u64 work_done(s32 cpu, u64 ran)
{
	u32 cap = test_capacity ?: scx_bpf_cpuperf_cap(cpu), cur;

	if (cap >= PERF_ONE && !test_capacity) {
		cur = scx_bpf_cpuperf_cur(cpu);
		return cur >= PERF_ONE ? ran : ran * cur / PERF_ONE;
	}
	cur = test_capacity ? PERF_ONE : scx_bpf_cpuperf_cur(cpu);
	return ran * cap / PERF_ONE * cur / PERF_ONE;
}

/* Factors are times 1024. */
#define FACTOR_ONE 1024
#define FACTOR_MAX (4 * FACTOR_ONE)
/* A factor is what nobody stayed below in the last two windows of this length. */
#define FACTOR_WINDOW (500 * TN_MSEC)
/* Less than this is what any declaration may be wrong by. */
#define FACTOR_LEAST (FACTOR_ONE + FACTOR_ONE / 8)

/* The factor with which declared runtimes are read. */
u32 overrun_factor = FACTOR_ONE;
static u32 factor_least = FACTOR_MAX; /* in this window, and in the last */
static u32 factor_last = FACTOR_MAX;
static u32 factor_pid; /* the first task of this window */
static u32 factor_tasks; /* 2: there was another */
static u64 factor_since;

/* A declared task's jobs take @usual where @declared was declared. */
static void note_factor(u32 pid, u64 usual, u64 declared, u64 now)
{
	u64 factor = usual * FACTOR_ONE / MAX(declared, 1);

	if (since(now, factor_since) >= FACTOR_WINDOW) {
		u32 least = MIN(factor_least, factor_last);

		/* One task alone may just be wrong about itself. */
		overrun_factor = factor_tasks >= 2 && least >= FACTOR_LEAST ?
					 MIN(least, FACTOR_MAX) :
					 FACTOR_ONE;
		factor_last = factor_tasks ? factor_least : FACTOR_MAX;
		factor_least = FACTOR_MAX;
		factor_tasks = 0;
		factor_since = now;
	}
	if (!factor_tasks)
		factor_pid = pid;
	if (!factor_tasks || (factor_tasks == 1 && factor_pid != pid))
		factor_tasks++;
	if (factor < factor_least)
		factor_least = factor;
}

/* The declared runtime, as it is read here. */
static u64 read_runtime(u64 runtime, u64 deadline)
{
	return MIN(runtime * overrun_factor / FACTOR_ONE, deadline);
}

/* How fast a CPU's use is forgotten: a window of this length weighs half. */
#define USE_WINDOW (16 * TN_MSEC)

/* @cpu has been busy or idle since the last call. */
static void note_use(s32 cpu, bool busy, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 window = MIN(since(now, cpuc->use_at), 4 * USE_WINDOW);
	u64 now_use = busy ? PERF_ONE : 0;

	cpuc->use_at = now;
	/* Weighted by how much of a window has passed. */
	cpuc->use = (cpuc->use * USE_WINDOW + now_use * window) / (USE_WINDOW + window);
}

/* Asks for a clock of a quarter more than @cpu's use, and for all of it while a declared job runs
 * that has little slack. */
static void ask_clock(s32 cpu, bool urgent)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u32 perf = urgent ? PERF_ONE : MIN(cpuc->use + cpuc->use / 4, PERF_ONE);

	if (!set_cpuperf)
		return;
	/* Steps of 1/16 are enough; each change costs. */
	perf = MIN((perf + 63) & ~63U, PERF_ONE);
	if (perf == cpuc->perf)
		return;
	cpuc->perf = perf;
	this_stats()->perf_requests++;
	scx_bpf_cpuperf_set(cpu, perf);
}

#endif /* __TEMPONET_WORK_BPF_H */
