/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The weight of a hog, from its nice value and the weights of its cgroups. Weights matter where
 * there is no deadline to go by. So only hogs are weighed, when they are queued and at the tick.
 *
 * A cgroup's hogs share its weight times the weights of the cgroups above it. This flattens the
 * tree. The result is the kernel's as long as sibling cgroups have equally many busy children.
 * Where they do not, a busy leaf of a crowded branch gets more than it should, for example one of
 * ten busy services beside one busy user.
 */
#ifndef __TEMPONET_CGROUP_BPF_H
#define __TEMPONET_CGROUP_BPF_H

#include "state.bpf.h"

struct cgroup_ctx {
	u64 weight; /* cpu.weight: 1 to 10000, 100 by default */
	u64 hogs; /* weights of its runnable hogs */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cgroup_ctx);
} cgroup_ctxs SEC(".maps");

static struct cgroup_ctx *cgroup_ctx(struct cgroup *cgrp)
{
	return bpf_cgrp_storage_get(&cgroup_ctxs, cgrp, 0, 0);
}

/* How many levels of cgroups below the root are multiplied. */
#define WEIGHT_LEVELS 8

/* The product of the weights from @cgrp up to the root, times 1024; a weight of 100 counts as 1. */
static u64 cgroup_factor(struct cgroup *cgrp)
{
	u64 factor = 1024;
	int level;

	bpf_for(level, 1, WEIGHT_LEVELS + 1) {
		struct cgroup_ctx *cgc;
		struct cgroup *up;

		if (level > cgrp->level)
			break;
		up = bpf_cgroup_ancestor(cgrp, level);
		if (!up)
			break;
		cgc = cgroup_ctx(up);
		if (cgc)
			factor = factor * cgc->weight / 100;
		bpf_cgroup_release(up);
		/* A few levels of extreme weights multiply to a meaningless number. */
		factor = MIN(factor, 1024 * 1024);
	}
	return factor;
}

static void uncharge_cgroup(struct task_ctx *tctx, struct cgroup *cgrp)
{
	struct cgroup_ctx *cgc = cgroup_ctx(cgrp);

	if (cgc)
		__sync_fetch_and_sub(&cgc->hogs, tctx->cgroup_charge);
	tctx->cgroup_charge = 0;
}

/* The hog sleeps or leaves: the other hogs of its cgroup share its weight. */
static void unweigh_hog(struct task_struct *p, struct task_ctx *tctx)
{
	struct cgroup *cgrp;

	if (!tctx->cgroup_charge)
		return;
	cgrp = scx_bpf_task_cgroup(p);
	if (!cgrp)
		return;
	uncharge_cgroup(tctx, cgrp);
	bpf_cgroup_release(cgrp);
}

/* Computes the hog's weight and counts it in its cgroup. */
static void weigh_hog(struct task_struct *p, struct task_ctx *tctx)
{
	u64 weight = p->scx.weight ?: 1;
	struct cgroup_ctx *cgc;
	struct cgroup *cgrp;

	tctx->hog_weight = weight * 1024;
	cgrp = scx_bpf_task_cgroup(p);
	if (!cgrp)
		return;
	cgc = cgrp->level ? cgroup_ctx(cgrp) : NULL;
	if (cgc) {
		if (tctx->cgroup_charge != weight) {
			__sync_fetch_and_add(&cgc->hogs, weight - tctx->cgroup_charge);
			tctx->cgroup_charge = weight;
		}
		tctx->hog_weight = weight * 100 * cgroup_factor(cgrp) / MAX(cgc->hogs, weight);
		tctx->hog_weight = MAX(tctx->hog_weight, 1);
	}
	bpf_cgroup_release(cgrp);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(temponet_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	struct cgroup_ctx *cgc;

	cgc = bpf_cgrp_storage_get(&cgroup_ctxs, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!cgc)
		return -ENOMEM;
	cgc->weight = args->weight;
	return 0;
}

void BPF_STRUCT_OPS(temponet_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_ctx *cgc = cgroup_ctx(cgrp);

	if (cgc)
		cgc->weight = weight;
}

void BPF_STRUCT_OPS(temponet_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		uncharge_cgroup(tctx, from);
}

#endif /* __TEMPONET_CGROUP_BPF_H */
