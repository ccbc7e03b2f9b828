/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What runs on this machine, whoever schedules it.
 *
 * A wake-up releases a job, going to sleep completes it, and the time in between
 * that the task was on a CPU is what the job took. Every job becomes a record in a
 * ring buffer. Where the buffer is full the job is kept and becomes part of the
 * task's next record, so that no run time is lost, only the moment; this is
 * counted.
 *
 * With `only_tgid` set it follows that process alone and tells of every stretch
 * that one of its threads was on a CPU.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "record.h"

char _license[] SEC("license") = "GPL";

/* The kernel's TASK_DEAD, a macro that BTF does not carry. */
#define RECORD_TASK_DEAD 0x80

/* The recorder itself is not recorded. */
const volatile u32 own_tgid = 0;
/* When recording began, and, for flush, when it ended. */
u64 start_ns = 0;
u64 end_ns = 0;
u32 only_tgid = 0;
/* Records that found the buffer full. */
u64 postponed = 0;
/* Times that a task could not be followed for want of memory. */
u64 unseen = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

struct note {
	/* On a CPU since then; 0: not on one. */
	u64 since;
	/* What is not told yet: when it began, how much ran, how many jobs ended. */
	u64 release;
	u64 run;
	u32 jobs;
	u32 asleep;
	u64 slept_at;
	u64 emitted_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct note);
} notes SEC(".maps");

static bool is_followed(struct task_struct *p)
{
	u32 tgid = p->tgid;

	if (!p->pid || tgid == own_tgid)
		return false;
	return !only_tgid || tgid == only_tgid;
}

static struct note *note_of(struct task_struct *p)
{
	struct note *note = bpf_task_storage_get(&notes, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!note)
		__sync_fetch_and_add(&unseen, 1);
	return note;
}

static __always_inline bool emit_record(struct task_struct *p, u32 kind, u64 release, u64 end, u64 run, u32 jobs)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&postponed, 1);
		return false;
	}
	r->release_ns = release;
	r->end_ns = end;
	r->run_ns = run;
	r->tid = p->pid;
	r->tgid = p->tgid;
	r->cpu = bpf_get_smp_processor_id();
	r->kind = kind;
	r->jobs = jobs;
	r->unused = 0;
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), p->comm);
	/* The reader looks by itself a few times a second: waking it for every
	 * record would be load of our own making. */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static void emit_pending(struct task_struct *p, struct note *note, u32 kind, u64 end)
{
	if (!emit_record(p, kind, note->release, end, note->run, note->jobs))
		return;
	note->emitted_at = end;
	note->run = 0;
	note->jobs = 0;
	/* A job that goes on has its next part from here. */
	note->release = kind == RECORD_PART ? end : 0;
}

static void wakes_up(struct task_struct *p)
{
	struct note *note;
	u64 now;

	if (!is_followed(p))
		return;
	note = note_of(p);
	if (!note)
		return;
	/* Woken before it was off the CPU: the job goes on. */
	if (!note->asleep && note->release)
		return;
	now = bpf_ktime_get_ns();
	note->asleep = 0;
	/* What came too fast to be told, and is not followed by more. */
	if (note->jobs && now - note->slept_at >= RECORD_LEAST_NS)
		emit_pending(p, note, RECORD_JOB, note->slept_at);
	if (!note->release)
		note->release = now;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	wakes_up(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	wakes_up(p);
	return 0;
}

static void leaves_cpu(struct task_struct *p, bool sleeps, bool ends, u64 now)
{
	struct note *note = note_of(p);
	u64 since, run;

	if (!note)
		return;
	/* Never seen to get on the CPU: it was there when we came. */
	since = note->since ?: start_ns;
	run = now > since ? now - since : 0;
	note->since = 0;
	if (only_tgid) {
		emit_record(p, RECORD_STRETCH, since, now, run, 0);
		return;
	}
	note->run += run;
	if (!note->release)
		note->release = since;
	if (sleeps) {
		note->asleep = 1;
		note->slept_at = now;
		note->jobs++;
		if (ends || now - note->emitted_at >= RECORD_LEAST_NS)
			emit_pending(p, note, RECORD_JOB, now);
	} else if (now - note->release >= RECORD_PART_NS) {
		emit_pending(p, note, RECORD_PART, now);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();
	struct note *note;

	if (is_followed(prev))
		leaves_cpu(prev, prev_state && !preempt, prev_state & RECORD_TASK_DEAD, now);
	if (is_followed(next)) {
		note = note_of(next);
		if (!note)
			return 0;
		note->since = now;
		note->asleep = 0;
		if (!note->release)
			note->release = now;
	}
	return 0;
}

/* An int in some kernels and a byte in others. */
static bool is_on_cpu(struct task_struct *p)
{
	u32 on = 0;

	bpf_core_read(&on, bpf_core_field_size(p->on_cpu), &p->on_cpu);
	return on;
}

/* Who is on a CPU when recording begins. Whoever leaves it meanwhile corrects this
 * when it is back. */
SEC("iter/task")
int prime(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct note *note;

	if (!p || !is_on_cpu(p) || !is_followed(p))
		return 0;
	note = note_of(p);
	if (note && !note->since)
		note->since = start_ns;
	return 0;
}

/* What is not told yet when recording ends. */
SEC("iter/task")
int flush(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct note *note;

	if (!p || !is_followed(p))
		return 0;
	note = bpf_task_storage_get(&notes, p, 0, 0);
	if (!note)
		return 0;
	if (is_on_cpu(p) && note->since && end_ns > note->since) {
		if (only_tgid)
			emit_record(p, RECORD_STRETCH, note->since, end_ns, end_ns - note->since, 0);
		if (!note->release)
			note->release = note->since;
		note->run += end_ns - note->since;
		note->since = 0;
	}
	if (note->run && !only_tgid)
		emit_pending(p, note, note->asleep ? RECORD_JOB : RECORD_PART,
			     note->asleep ? note->slept_at : end_ns);
	return 0;
}
