/* SPDX-License-Identifier: GPL-2.0-only */
/* Constants and structs that record.bpf.c and its reader in Rust share. Times are nanoseconds. */
#ifndef __TEMPONET_RECORD_H
#define __TEMPONET_RECORD_H

#ifndef __VMLINUX_H__
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum record_consts {
	RECORD_COMM_LEN = 16,
	/* A task that sleeps more often than this has at most one record per this time. */
	RECORD_LEAST_NS = 1000 * 1000,
	/* A long job is recorded in parts of about this length. */
	RECORD_PART_NS = 100 * 1000 * 1000,
};

enum record_kind {
	/* From a wake-up until the task slept or ended. */
	RECORD_JOB = 0,
	/* The task was preempted, or the recording ended: the job goes on. */
	RECORD_PART = 1,
	/* One stretch on one CPU. */
	RECORD_STRETCH = 2,
};

struct record {
	u64 release_ns;
	u64 end_ns;
	u64 run_ns;
	u32 tid;
	u32 tgid;
	u32 cpu;
	u32 kind;
	/* Jobs in this record: more than one where they followed each other too fast. */
	u32 jobs;
	u32 unused;
	char comm[RECORD_COMM_LEN];
};

#endif
