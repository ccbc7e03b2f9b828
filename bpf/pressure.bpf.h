/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overload: more work with deadlines than there is time for. Only then are hopeless jobs given up.
 * It is judged by jobs that end late. A domain is judged for jobs that its CPUs share, and a CPU
 * for jobs that may run nowhere else. Each is judged twice: by declared jobs alone, which no other
 * jobs keep waiting, and by all jobs.
 */
#ifndef __TEMPONET_PRESSURE_BPF_H
#define __TEMPONET_PRESSURE_BPF_H

#include "state.bpf.h"

enum { LATE_DECLARED, LATE_ANY };

struct pressure {
	u64 late_since[2]; /* when the first of the late_jobs ended */
	u32 late_jobs[2]; /* jobs that ended late since no job waited */
	u64 contended_at; /* last time a job ran while another waited */
	u64 late_ran_at; /* last time a given-up job ran soon after such contention */
} __attribute__((aligned(64)));

static struct pressure pressures[NR_LANES];

static struct pressure *pressure(u32 lane_id)
{
	return &pressures[bounded(lane_id, NR_LANES)];
}

/* The CPUs of a domain share these words. A write per millisecond is exact enough and spares the
 * cache line. */
static void note_time(u64 *when, u64 now)
{
	if (since(now, *when) >= TN_MSEC)
		*when = now;
}

/* A given-up job runs. */
static void note_late_run(u32 lane_id, u64 now)
{
	struct pressure *pr = pressure(lane_id);

	if (since(now, pr->contended_at) < TN_CONTENDED_FOR)
		note_time(&pr->late_ran_at, now);
}

/* A job ended late. */
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
 * No job waits. That ends an overload, unless no job waits because a given-up one has its turn. Its
 * deadlines are long past. Outside of overload they would put it in front, and make all others late
 * again.
 */
static void note_drained(u32 lane_id)
{
	struct pressure *pr = pressure(lane_id);

	if (pr->late_jobs[LATE_ANY] && since(scx_bpf_now(), pr->late_ran_at) >= TN_OVERLOAD_AFTER)
		pr->late_jobs[LATE_ANY] = pr->late_jobs[LATE_DECLARED] = 0;
}

/*
 * Is the lane overloaded? CPUs may be busy for long within their capacity, and single jobs may be
 * late for a passing reason. Several late jobs while the CPUs were busy all the time are overload.
 */
static bool lane_overloaded(u32 lane_id, u32 servers, bool declared, u64 now)
{
	struct pressure *pr = pressure(lane_id);
	u32 which = declared ? LATE_DECLARED : LATE_ANY;

	return pr->late_jobs[which] >= TN_OVERLOAD_LATE * servers &&
	       time_after(now, pr->late_since[which] + TN_OVERLOAD_AFTER);
}

/* Is there overload on @cpu, for @declared jobs or for all? */
static bool overloaded(s32 cpu, bool declared, u64 now)
{
	u32 dom = dom_of(cpu);

	return give_up && (lane_overloaded(dom, nr_servers(dom), declared, now) ||
			   lane_overloaded(cpu_lane(cpu), 1, declared, now));
}

#endif /* __TEMPONET_PRESSURE_BPF_H */
