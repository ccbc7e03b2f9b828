/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parents and children. A child begins with its parent's debt (fair.bpf.h) and hands its own back
 * when it exits. So a stream of short processes has one share, as if one process did their work.
 */
#ifndef __TEMPONET_LINEAGE_BPF_H
#define __TEMPONET_LINEAGE_BPF_H

#include "fair.bpf.h"
#include "group.bpf.h"
#include "state.bpf.h"

static u64 debt(const struct task_ctx *tctx)
{
	return ahead(tctx->vtime, group(tctx->group)->clock);
}

/* The group of a new task. The verifier does not trust a cgroup in the arguments, so it is looked
 * up by its id. */
static u32 first_group(struct scx_init_task_args *args)
{
	struct cgroup *cgrp;
	u32 id;

	if (!bpf_core_field_exists(args->cgroup))
		return GROUP_ROOT;
	cgrp = bpf_cgroup_from_id(BPF_CORE_READ(args, cgroup, kn, id));
	if (!cgrp)
		return GROUP_ROOT;
	id = group_of(cgrp);
	bpf_cgroup_release(cgrp);
	return id;
}

/* A new task, or one that is older than the scheduler. */
static void begin_share(struct task_struct *p, struct task_ctx *tctx,
			struct scx_init_task_args *args)
{
	struct task_ctx *parent;

	tctx->group = first_group(args);
	tctx->weight = task_weight(p);
	tctx->vtime = group(tctx->group)->clock;
	/* What weighs less than nice 0 begins at the back: one slice ahead of its share. */
	if (tctx->weight < WEIGHT_ONE)
		tctx->vtime += (u64)TN_SLICE_BACKGROUND * WEIGHT_ONE / tctx->weight;
	if (!args->fork)
		return;
	parent = task_ctx(bpf_get_current_task_btf());
	if (parent)
		tctx->vtime += debt(parent);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(temponet_process_exit, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p), *heir;
	struct task_struct *to;

	if (!tctx || tctx->base == TN_DECLARED)
		return 0;
	to = p->pid == p->tgid ? p->real_parent : p->group_leader;
	if (!to)
		return 0;
	heir = bpf_task_storage_get(&task_ctxs, to, 0, 0);
	if (heir && debt(tctx) > debt(heir))
		heir->vtime = group(heir->group)->clock + debt(tctx);
	return 0;
}

#endif /* __TEMPONET_LINEAGE_BPF_H */
