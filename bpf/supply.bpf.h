/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Supply: what declared jobs get of a CPU while they want all of it. The rest goes to switches, to
 * the agent, to turns by the bound and to higher classes. The agent asks no more of a CPU than that
 * (src/agent/supply.rs). Interrupts count as work of the job that they interrupt, here as in its
 * cost.
 */
#ifndef __TEMPONET_SUPPLY_BPF_H
#define __TEMPONET_SUPPLY_BPF_H

#include "board.bpf.h"
#include "queue.bpf.h"
#include "state.bpf.h"

static bool declared_wait(s32 cpu)
{
	return queue_len(queue_id(dom_of(cpu), TN_DECLARED)) ||
	       queue_len(queue_id(cpu_lane(cpu), TN_DECLARED));
}

static void note_supply_start(s32 cpu, u64 now)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	cpuc->supply_from = now;
	if (!cpuc->supply_wanted)
		cpuc->supply_at = now;
}

/* A task of @tier stops. What others run counts only where declared jobs waited at both ends. */
static void note_supply_stop(s32 cpu, u32 tier, bool runnable)
{
	struct temponet_supply *supply = &board.supply[bounded(cpu, TN_MAX_CPUS)];
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	bool wanted;
	u64 now;

	if (!agent_wanted())
		return;
	wanted = declared_wait(cpu) || (tier == TN_DECLARED && runnable);
	if (tier != TN_DECLARED && !wanted && !cpuc->supply_wanted)
		return;
	now = scx_bpf_now();
	if (tier == TN_DECLARED)
		supply->ran_ns += since(now, cpuc->supply_from);
	if (tier == TN_DECLARED || (cpuc->supply_wanted && wanted))
		supply->wanted_ns += since(now, cpuc->supply_at);
	cpuc->supply_wanted = wanted;
	cpuc->supply_at = now;
}

#endif /* __TEMPONET_SUPPLY_BPF_H */
