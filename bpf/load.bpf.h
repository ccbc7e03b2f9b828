/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much is declared. Where all tasks together declare less than one CPU, runtime over
 * deadline, earliest deadline first has every job on time, on however many CPUs and
 * wherever the tasks may run: there is nothing to decide.
 */
#ifndef __TEMPONET_LOAD_BPF_H
#define __TEMPONET_LOAD_BPF_H

/* Of a CPU; the rest is for what switching costs. */
#define LOAD_ONE (1ULL << 20)
#define LOAD_FITS (LOAD_ONE / 10 * 9)

static u64 declared_load;

/* To be called whenever a task's parameters, or whether it is ours, may have changed. */
static void claim_load(struct task_ctx *tctx, bool declared)
{
	u64 claim = 0;

	if (declared)
		claim = (tctx->runtime_ns << 20) / MAX(tctx->rel_deadline_ns, 1);
	if (claim == tctx->claim)
		return;
	__sync_fetch_and_add(&declared_load, claim - tctx->claim);
	tctx->claim = claim;
}

/* Nothing is to be decided, by what was declared and by what was seen. */
static bool at_ease(s32 cpu, u64 now)
{
	return declared_load <= LOAD_FITS && !overloaded(cpu, true, now);
}

#endif /* __TEMPONET_LOAD_BPF_H */
