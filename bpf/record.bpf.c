/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recorder: what runs on this machine, under any scheduler.
 *
 * A wake-up releases a job and going to sleep completes it. The time that the task was on a CPU in
 * between is what the job took. Every job becomes a record in a ring buffer. Where the buffer is
 * full, the job is kept and becomes part of the task's next record. So no run time is lost, only
 * the moment at which it ended; `postponed` counts this.
 *
 * With `only_tgid` set the recorder follows that process alone, and emits a record for every
 * stretch that one of its threads was on a CPU.
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
/* Recording goes on while start_ns is set and end_ns is not. Attaching and detaching take long on a
 * busy machine, and what the programs see meanwhile must not count. */
volatile u64 start_ns = 0;
volatile u64 end_ns = 0;
u32 only_tgid = 0;
/* Records that found the buffer full. */
u64 postponed = 0;
/* How often a task could not be followed because there was no memory for its note. */
u64 unseen = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/*
 * CPU time is counted per CPU, from switch to switch, not per task. So the sum can never exceed the
 * time that the CPU had, even if there was no memory for a task's note when it was switched in.
 */
struct cpu_time {
	/* The last switch; 0: none since recording began. */
	u64 since;
	/* Time that has passed here and is not charged to any task yet. */
	u64 unspent;
	/* The task that was switched in then; 0: none that is followed. */
	u32 tid;
	u32 unused;
};

/* One per CPU. Userspace sets the number before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_time);
} cpus SEC(".maps");

/* What the recorder knows of a task. */
struct note {
	/* The kernel's count of the task's CPU time when it was last switched in. */
	u64 counted;
	/* What is in no record yet: when it began, how much ran, how many jobs ended. */
	u64 release;
	u64 run;
	u32 jobs;
	u32 asleep;
	u64 slept_at;
	u64 emitted_at;
	/* The CPU where the task was last switched in. */
	u32 cpu;
	/* The task was seen being switched in, so `counted` and `cpu` are valid. */
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

/* Returns false where the buffer is full. */
static __always_inline bool emit_record(struct task_struct *p, u32 kind, u64 release, u64 end,
					u64 run, u32 jobs)
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
	/* The reader polls a few times a second. Waking it for every record would add load to the
	 * machine that is recorded. */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

/* Emits what is in no record yet. Where the buffer is full it stays for the next time. */
static void emit_pending(struct task_struct *p, struct note *note, u32 kind, u64 end)
{
	if (!emit_record(p, kind, note->release, end, note->run, note->jobs))
		return;
	note->emitted_at = end;
	note->run = 0;
	note->jobs = 0;
	/* The next part of a job that goes on begins here. */
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
	/* The task was woken before it had left the CPU: the job goes on. */
	if (!note->asleep && note->release)
		return;
	now = bpf_ktime_get_ns();
	note->asleep = 0;
	/* Jobs that followed each other too fast for a record each are emitted once the task has
	 * slept for long enough. */
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
 * The CPU time of a stretch that has ended, by the kernel's count, which /proc/PID/schedstat shows
 * too. It leaves out what a hypervisor stole and, where the kernel keeps them apart, interrupts.
 * The kernel's clock and ours are read at slightly different moments, so a stretch may seem longer
 * than the time that has passed. It is charged no more than is left on this CPU.
 */
static u64 take_run(struct task_struct *p, struct note *note, struct cpu_time *cpu, u64 span)
{
	u64 counted = p->se.sum_exec_runtime;
	/* A task that was not seen being switched in ran when recording began, or had no note. */
	u64 run = note->entered ? counted - note->counted : span;

	note->entered = 0;
	cpu->unspent += span;
	if (run > cpu->unspent)
		run = cpu->unspent;
	cpu->unspent -= run;
	return run;
}

/* @p was switched out after it had been on a CPU from @since to @now. */
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

/* @p was switched in on CPU @nr. */
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

/* p->on_cpu is an int in some kernels and a byte in others. */
static bool is_on_cpu(struct task_struct *p)
{
	u32 on = 0;

	bpf_core_read(&on, bpf_core_field_size(p->on_cpu), &p->on_cpu);
	return on;
}

/* Makes the notes of all tasks before recording begins: at a switch there may be no memory. */
SEC("iter/task")
int prime(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;

	if (p && is_followed(p))
		note_of(p);
	return 0;
}

/* The CPU that the task was on when recording ended, or NULL. */
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
	/* The task may have been on the CPU all the time, without a switch. */
	return !cpu->since && is_on_cpu(p) ? cpu : NULL;
}

/* Emits what is in no record yet when recording ends. */
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
		/* The last stretch is measured by the clock: the kernel's count of a running task
		 * is up to a tick old, and up to a second on a CPU without ticks. */
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
