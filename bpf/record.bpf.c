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
/* Recording goes on while start_ns is set and end_ns is not: attaching and detaching
 * take long on a busy machine, and what is seen meanwhile must not count. */
volatile u64 start_ns = 0;
volatile u64 end_ns = 0;
u32 only_tgid = 0;
/* Records that found the buffer full. */
u64 postponed = 0;
/* Times that a task could not be followed for want of memory. */
u64 unseen = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/*
 * Time on a CPU is counted per CPU, from switch to switch, and not per task, from
 * getting on to getting off: the former cannot come to more than the CPU had, even if
 * a task's note could not be made when it got on.
 */
struct cpu_time {
	/* The last switch; 0: none since the recording began. */
	u64 since;
	/* Time that has passed here and is nobody's yet. */
	u64 unspent;
	/* Who got on then. */
	u32 tid;
	u32 unused;
};

/* As many as there are CPUs; the reader sees to that. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_time);
} cpus SEC(".maps");

struct note {
	/* What the kernel had counted for the task when it got on the CPU. */
	u64 counted;
	/* What is not told yet: when it began, how much ran, how many jobs ended. */
	u64 release;
	u64 run;
	u32 jobs;
	u32 asleep;
	u64 slept_at;
	u64 emitted_at;
	/* Where it got on last. */
	u32 cpu;
	/* It was seen to get on, so that `counted` and `cpu` hold. */
	u32 entered;
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

static bool is_recording(void)
{
	return start_ns && !end_ns;
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

	if (!is_recording() || !is_followed(p))
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

/*
 * What the kernel counted while the task was on the CPU, which leaves out what a
 * hypervisor stole and, where the kernel keeps them apart, interrupts; /proc/PID/schedstat
 * shows the same. The two clocks are read at slightly different moments, so a stretch may
 * come to a little more than has passed: never more than is left on this CPU.
 */
static u64 take_run(struct task_struct *p, struct note *note, struct cpu_time *cpu, u64 span)
{
	u64 counted = p->se.sum_exec_runtime;
	/* Not seen to get on: it was there when recording began, or had no note. */
	u64 run = note->entered ? counted - note->counted : span;

	note->entered = 0;
	cpu->unspent += span;
	if (run > cpu->unspent)
		run = cpu->unspent;
	cpu->unspent -= run;
	return run;
}

static void leaves_cpu(struct task_struct *p, struct note *note, u64 since, u64 run, bool sleeps,
		       bool ends, u64 now)
{
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

static void enters_cpu(struct task_struct *p, struct cpu_time *cpu, u32 nr, u64 now)
{
	struct note *note = note_of(p);

	cpu->tid = p->pid;
	if (!note)
		return;
	note->counted = p->se.sum_exec_runtime;
	note->cpu = nr;
	note->entered = 1;
	note->asleep = 0;
	if (!note->release)
		note->release = now;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 nr = bpf_get_smp_processor_id();
	u64 now, since, span;
	struct note *note;
	struct cpu_time *cpu;

	if (!is_recording())
		return 0;
	cpu = bpf_map_lookup_elem(&cpus, &nr);
	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	since = cpu->since ?: start_ns;
	span = now > since ? now - since : 0;
	cpu->since = now;
	cpu->tid = 0;
	if (is_followed(prev)) {
		note = note_of(prev);
		if (note)
			leaves_cpu(prev, note, since, take_run(prev, note, cpu, span),
				   prev_state && !preempt, prev_state & RECORD_TASK_DEAD, now);
	}
	if (is_followed(next))
		enters_cpu(next, cpu, nr, now);
	return 0;
}

/* An int in some kernels and a byte in others. */
static bool is_on_cpu(struct task_struct *p)
{
	u32 on = 0;

	bpf_core_read(&on, bpf_core_field_size(p->on_cpu), &p->on_cpu);
	return on;
}

/* Notes for all before recording begins: at a switch memory may be short. */
SEC("iter/task")
int prime(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;

	if (p && is_followed(p))
		note_of(p);
	return 0;
}

/* Where the task was when recording ended; NULL: on no CPU. */
static struct cpu_time *cpu_at_end(struct task_struct *p, struct note *note)
{
	u32 nr = BPF_CORE_READ(p, thread_info.cpu);
	struct cpu_time *cpu;

	if (note->entered)
		nr = note->cpu;
	cpu = bpf_map_lookup_elem(&cpus, &nr);
	if (!cpu)
		return NULL;
	if (note->entered)
		return cpu->tid == p->pid ? cpu : NULL;
	/* It may have been there all the time, without a switch. */
	return !cpu->since && is_on_cpu(p) ? cpu : NULL;
}

/* What is not told yet when recording ends. */
SEC("iter/task")
int flush(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct note *note;
	struct cpu_time *cpu;
	u64 since, span;

	if (!p || !is_followed(p))
		return 0;
	note = bpf_task_storage_get(&notes, p, 0, 0);
	if (!note)
		return 0;
	cpu = cpu_at_end(p, note);
	since = cpu ? cpu->since ?: start_ns : 0;
	if (cpu && end_ns > since) {
		/* By the clock: the kernel's own count of who is on a CPU is up to a tick
		 * old, and on a CPU without ticks a second. */
		span = end_ns - since;
		note->entered = 0;
		cpu->since = end_ns;
		if (only_tgid)
			emit_record(p, RECORD_STRETCH, since, end_ns, span, 0);
		if (!note->release)
			note->release = since;
		note->run += span;
	}
	if (note->run && !only_tgid)
		emit_pending(p, note, note->asleep ? RECORD_JOB : RECORD_PART,
			     note->asleep ? note->slept_at : end_ns);
	return 0;
}
