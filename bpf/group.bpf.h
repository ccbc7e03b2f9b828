/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cgroups, as a tree of groups in an array: a walk to the root costs a load per level, where
 * the kernel's own structures would cost a look-up and a reference each. Group 0 is the root. A
 * task without cgroups belongs to it.
 *
 * Each group knows which of its children are runnable, tasks and groups, by the sum of their
 * weights. Weights are the kernel's: 1024 at nice 0 and at cpu.weight 100.
 */
#ifndef __TEMPONET_GROUP_BPF_H
#define __TEMPONET_GROUP_BPF_H

#include "state.bpf.h"

/* A power of two for bounded(). Where there are more cgroups, those beyond belong to their
 * parent. */
#define NR_GROUPS 4096
#define GROUP_ROOT 0
/* How many levels of cgroups below the root are told apart. Deeper ones belong to the last. */
#define GROUP_LEVELS 8

#define WEIGHT_ONE 1024
/* SCHED_IDLE, as a policy and as the weight that the kernel gives it. */
#define POLICY_IDLE 5
#define WEIGHT_IDLE 3

struct group {
	/* As a child of its parent. */
	u64 vtime; /* its place on the parent's clock (fair.bpf.h) */
	u64 weight;
	u64 counted; /* its part of the parent's sum of runnable weights, 0: not runnable */
	u32 parent;
	u32 level; /* 0: the root */

	/* As a parent of tasks and groups. */
	u64 clock; /* the virtual time of its children */
	u64 runnable; /* weights of its runnable children */
	u32 nr_runnable;
	u32 used; /* 1: this entry belongs to a cgroup */
	/* How many times as long as on a machine of its own something takes in this group, at
	 * its share, times 1024. */
	u64 stretch;

	/* cpu.max (quota.bpf.h). */
	u64 period; /* 0: no limit */
	u64 quota;
	s64 left; /* of this period's quota; less than 0: overrun */
	u64 refill_at;
	u64 polled_at;
	u64 cgroup; /* its address, to read the limit */
} __attribute__((aligned(64)));

static struct group groups[NR_GROUPS];

static struct group *group(u32 id)
{
	return &groups[bounded(id, NR_GROUPS)];
}

/* On several CPUs the root's children take less long than on one. This is what a clock that was
 * not measured yet is taken to be (fair.bpf.h). */
static u64 least_stretch;

static void note_capacity(u32 cpus)
{
	least_stretch = MAX(WEIGHT_ONE / MAX(cpus, 1), 1);
	groups[GROUP_ROOT].stretch = MAX(groups[GROUP_ROOT].stretch, least_stretch);
}

/* The group of each cgroup, plus 1. */
struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} cgroup_groups SEC(".maps");

static u32 group_of(struct cgroup *cgrp)
{
	u32 *id = bpf_cgrp_storage_get(&cgroup_groups, cgrp, 0, 0);

	return id && *id ? *id - 1 : GROUP_ROOT;
}

/* The kernel's weights for nice -20 to 19. */
static const u32 nice_weight[64] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
};
#define STATIC_PRIO_FIRST 100 /* that of nice -20 */

static u64 task_weight(const struct task_struct *p)
{
	if (p->policy == POLICY_IDLE)
		return WEIGHT_IDLE;
	return nice_weight[bounded(p->static_prio - STATIC_PRIO_FIRST, 64)] ?: WEIGHT_ONE;
}

static u64 cgroup_weight(u32 cpu_weight)
{
	return MAX((u64)cpu_weight * WEIGHT_ONE / 100, 1);
}

/* The first runnable child makes its group runnable, and so on up to the root. */
__weak int group_runnable(u32 id, u64 weight)
{
	int level;

	bpf_for(level, 0, GROUP_LEVELS + 1) {
		struct group *grp = group(id);

		__sync_fetch_and_add(&grp->runnable, weight);
		if (__sync_fetch_and_add(&grp->nr_runnable, 1) || id == GROUP_ROOT)
			return 0;
		weight = grp->weight;
		grp->counted = weight;
		id = grp->parent;
	}
	return 0;
}

/* The last one leaves it. */
__weak int group_idle(u32 id, u64 weight)
{
	int level;

	bpf_for(level, 0, GROUP_LEVELS + 1) {
		struct group *grp = group(id);

		__sync_fetch_and_sub(&grp->runnable, weight);
		if (__sync_fetch_and_sub(&grp->nr_runnable, 1) != 1 || id == GROUP_ROOT)
			return 0;
		weight = __sync_lock_test_and_set(&grp->counted, 0);
		id = grp->parent;
	}
	return 0;
}

/* The task competes for its share from now on. */
static void count_runnable(const struct task_struct *p, struct task_ctx *tctx)
{
	if (tctx->counted_weight)
		return;
	tctx->counted_weight = tctx->weight = task_weight(p);
	group_runnable(tctx->group, tctx->weight);
}

/* The task sleeps, leaves, or has a deadline to go by. */
static void count_idle(struct task_ctx *tctx)
{
	if (!tctx->counted_weight)
		return;
	group_idle(tctx->group, tctx->counted_weight);
	tctx->counted_weight = 0;
}

/* The group's stretch by its parent's, which may be a moment old. */
static u64 update_stretch(struct group *grp)
{
	struct group *up = group(grp->parent);

	grp->stretch = MIN(up->stretch * MAX(up->runnable, grp->weight) / MAX(grp->weight, 1),
			   1ULL << 30);
	return grp->stretch;
}

/* Finds a free entry for a cgroup below @parent. Returns the parent itself if there is none. */
static u32 take_group(u32 parent, u32 cpu_weight)
{
	u32 id;

	if (group(parent)->level >= GROUP_LEVELS)
		return parent;
	bpf_for(id, 1, NR_GROUPS) {
		struct group *grp = group(id);

		if (grp->used || __sync_val_compare_and_swap(&grp->used, 0, 1))
			continue;
		grp->parent = parent;
		grp->level = group(parent)->level + 1;
		grp->weight = cgroup_weight(cpu_weight);
		grp->counted = 0;
		grp->runnable = 0;
		grp->nr_runnable = 0;
		grp->stretch = WEIGHT_ONE;
		grp->period = 0;
		grp->polled_at = 0;
		grp->vtime = group(parent)->clock;
		return id;
	}
	return parent;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(temponet_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	u32 parent = GROUP_ROOT, group_id, *id;
	struct cgroup *up;

	id = bpf_cgrp_storage_get(&cgroup_groups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!id)
		return -ENOMEM;
	if (!cgrp->level) {
		*id = GROUP_ROOT + 1;
		return 0;
	}
	up = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (up) {
		parent = group_of(up);
		bpf_cgroup_release(up);
	}
	group_id = take_group(parent, args->weight);
	if (group_id != parent)
		group(group_id)->cgroup = (u64)cgrp;
	*id = group_id + 1;
	return 0;
}

/* An entry that the cgroup shares with its parent stays the parent's. */
static bool owns_group(struct cgroup *cgrp, u32 id)
{
	return id != GROUP_ROOT && group(id)->level == cgrp->level;
}

void BPF_STRUCT_OPS_SLEEPABLE(temponet_cgroup_exit, struct cgroup *cgrp)
{
	u32 id = group_of(cgrp);

	if (owns_group(cgrp, id))
		group(id)->used = 0;
}

void BPF_STRUCT_OPS(temponet_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	u32 id = group_of(cgrp);
	struct group *grp = group(id);
	u64 old;

	if (!owns_group(cgrp, id))
		return;
	grp->weight = cgroup_weight(weight);
	old = grp->counted;
	if (old && __sync_val_compare_and_swap(&grp->counted, old, grp->weight) == old)
		__sync_fetch_and_add(&group(grp->parent)->runnable, grp->weight - old);
}

void BPF_STRUCT_OPS(temponet_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 lag;
	u32 id;

	if (!tctx)
		return;
	id = group_of(to);
	/* The task keeps its debt and its credit. */
	lag = tctx->vtime - group(tctx->group)->clock;
	count_idle(tctx);
	tctx->group = id;
	tctx->vtime = group(id)->clock + lag;
	/* A rule may match the new cgroup. */
	tctx->params_at = 0;
}

#endif /* __TEMPONET_GROUP_BPF_H */
