/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The declared load: the sum of all declared tasks' densities, runtime over deadline. Where it is
 * below one CPU, earliest deadline first has every job on time, on however many CPUs and wherever
 * the tasks may run. On m CPUs that share one queue the same holds up to m - (m - 1) * the largest
 * density, if every task may use all of them (Goossens, Funk and Baruah, 2003). Then there is
 * nothing to decide, and the agent is not woken.
 */
#ifndef __TEMPONET_LOAD_BPF_H
#define __TEMPONET_LOAD_BPF_H

#include "pressure.bpf.h"
#include "state.bpf.h"

/* One CPU, and the part of it that declared tasks may fill. The rest is for switching. */
#define LOAD_ONE (1ULL << 20)
#define LOAD_FITS (LOAD_ONE / 10 * 9)

/* Densities are counted in steps of 1/32, rounded up. A short scan then finds the largest. */
#define DENSITY_STEPS 32
#define DENSITY_STEP (LOAD_ONE / DENSITY_STEPS)

static u64 declared_load;
static u32 nr_dense[64]; /* tasks of each density; a power of two for bounded() */
static u32 nr_restricted; /* declared tasks that may not use all CPUs */

static u32 *dense(u64 claim)
{
	return &nr_dense[bounded(MIN((claim + DENSITY_STEP - 1) / DENSITY_STEP, DENSITY_STEPS),
				 64)];
}

/* Updates the task's part of the load. Called whenever its parameters may have changed, and when it
 * leaves this scheduler. */
static void claim_load(const struct task_struct *p, struct task_ctx *tctx, bool declared)
{
	bool restricted = declared && p->nr_cpus_allowed < nr_cpus;
	u64 claim = 0;

	if (declared)
		claim = (tctx->runtime_ns << 20) / MAX(tctx->rel_deadline_ns, 1);
	if (restricted != tctx->restricted) {
		__sync_fetch_and_add(&nr_restricted, restricted ? 1 : -1);
		tctx->restricted = restricted;
	}
	if (claim == tctx->claim)
		return;
	__sync_fetch_and_add(&declared_load, claim - tctx->claim);
	if (tctx->claim)
		__sync_fetch_and_sub(dense(tctx->claim), 1);
	if (claim)
		__sync_fetch_and_add(dense(claim), 1);
	tctx->claim = claim;
}

static u64 largest_density(void)
{
	int step;

	for (step = DENSITY_STEPS; step > 0; step--) {
		if (nr_dense[step])
			return step * DENSITY_STEP;
	}
	return 0;
}

__weak int load_fits(void)
{
	u32 cpus = nr_servers(0);

	if (declared_load <= LOAD_FITS)
		return true;
	if (nr_doms > 1 || nr_restricted || declared_load > cpus * LOAD_FITS)
		return false;
	return declared_load + (cpus - 1) * largest_density() <= cpus * LOAD_FITS;
}

/* All declared jobs will be on time, by what is declared and by what was seen so far. */
static bool feasible(s32 cpu, u64 now)
{
	return load_fits() && !overloaded(cpu, true, now);
}

#endif /* __TEMPONET_LOAD_BPF_H */
