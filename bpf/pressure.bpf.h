/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overload: is there more work with deadlines than time for it? Asked of a domain,
 * whose CPUs share their jobs, and of a CPU, for those that may run nowhere else; of
 * declared jobs alone, whom no others keep waiting, and of all.
 */
#ifndef __TEMPONET_PRESSURE_BPF_H
#define __TEMPONET_PRESSURE_BPF_H

#include "state.bpf.h"

enum { LATE_DECLARED, LATE_ANY };

struct pressure {
	u64 late_since[2]; /* when the first of these ended */
	u32 late_jobs[2]; /* that ended since there was time for all */
	u64 contended_at; /* last time one ran and another waited */
	u64 late_ran_at; /* last time one that was given up ran where they contend */
} __attribute__((aligned(64)));

static struct pressure pressures[NR_LANES];

static struct pressure *pressure(u32 lane_id)
{
	return &pressures[bounded(lane_id, NR_LANES)];
}

/* The CPUs of a domain share these words: no need to fight for them. */
static void note_time(u64 *when, u64 now)
{
	if (since(now, *when) >= TN_MSEC)
		*when = now;
}

/* A job that was given up runs. */
static void note_late_run(u32 lane_id, u64 now)
{
	struct pressure *pr = pressure(lane_id);

	if (since(now, pr->contended_at) < TN_CONTENDED_FOR)
		note_time(&pr->late_ran_at, now);
}

static void note_late_end(u32 lane_id, bool declared, u64 now)
{
	struct pressure *pr = pressure(lane_id);
	u32 which;

	for (which = declared ? LATE_DECLARED : LATE_ANY; which <= LATE_ANY; which++) {
		if (!pr->late_jobs[which])
			pr->late_since[which] = now;
		pr->late_jobs[which]++;
	}
}

/*
 * No job waits. That is the end of an overload, unless the reason is that one of
 * those that were given up has its turn: its deadlines are long past, and taken
 * at their word they would make everybody late again.
 */
static void note_drained(u32 lane_id)
{
	struct pressure *pr = pressure(lane_id);

	if (pr->late_jobs[LATE_ANY] && since(scx_bpf_now(), pr->late_ran_at) >= TN_OVERLOAD_AFTER)
		pr->late_jobs[LATE_ANY] = pr->late_jobs[LATE_DECLARED] = 0;
}

/*
 * CPUs that are busy for long may be so within their capacity, and a job may be
 * late for a passing reason. Both together, again and again, is overload.
 */
static bool lane_overloaded(u32 lane_id, u32 servers, bool declared, u64 now)
{
	struct pressure *pr = pressure(lane_id);
	u32 which = declared ? LATE_DECLARED : LATE_ANY;

	return pr->late_jobs[which] >= TN_OVERLOAD_LATE * servers &&
	       time_after(now, pr->late_since[which] + TN_OVERLOAD_AFTER);
}

/* For @declared jobs, or for others. */
static bool overloaded(s32 cpu, bool declared, u64 now)
{
	u32 dom = dom_of(cpu);

	return give_up && (lane_overloaded(dom, nr_servers(dom), declared, now) ||
			   lane_overloaded(cpu_lane(cpu), 1, declared, now));
}

#endif /* __TEMPONET_PRESSURE_BPF_H */
