"""What the guest is to do, as a script for it, and the guest that does it."""

import contextlib
import pathlib
import random
import shlex
import shutil
import subprocess
import sys

import workload
from schedulers import scheduler_named

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent


def run_name(scheduler, repeat):
    return f"{scheduler}.{repeat}"


def delay_s(options):
    """Before its first job every rt-app thread sleeps so long: time to declare
    deadlines."""
    return 3 + (0 if options.by_rule else len(options.tasks) // 6)


def offsets_us(options, repeat):
    """The first repeat releases all tasks at once: the worst case."""
    chance = random.Random(options.seed * 1000 + repeat)
    return [chance.randrange(task.period_us) if repeat else 0 for task in options.tasks]


def stretch(options):
    """By how much declared runtimes exceed the calibrated ones. The vCPUs of an
    icount guest share one clock, and not quite evenly: where N are busy a job
    takes between 0.85 N and 1.3 N times as long."""
    return options.stretch or (1 if options.pin and not options.hogs else 1.3 * options.cpus)


def hints(options, runtimes_us):
    return [f"{workload.thread_name(i, t)}:{runtimes_us[i]}:{t.period_us}:{t.period_us}" for i, t in enumerate(options.tasks)]


def hackbench_messages(options):
    """That each sender sends. Beside jobs about as many as take the time of the
    other measurement."""
    return (600 if options.tasks else 300) * options.seconds


def rt_call(options, name, repeat, folder):
    scheduler, run = scheduler_named(name), run_name(name, repeat)
    cpus = 1 if options.pin else options.cpus
    if scheduler.policy == "SCHED_DEADLINE" and not scheduler.forced:
        runtimes_us = workload.deadline_runtimes_us(options.tasks, stretch(options), cpus)
    else:
        runtimes_us = workload.declared_runtimes_us(options.tasks, stretch(options))
    delay = delay_s(options)
    text = workload.rtapp_file(
        options.tasks, scheduler.policy, delay * 1_000_000, options.seconds + 1, offsets_us(options, repeat), runtimes_us
    )
    (folder / f"{run}.json").write_text(text)
    launch, declared = scheduler.launch, []
    if scheduler.declares and options.by_rule:
        (folder / "rules.toml").write_text(workload.rules_file(options.tasks, runtimes_us))
        launch += " --rules /plan/rules.toml"
    elif scheduler.declares:
        declared = hints(options, runtimes_us)
    mask = str(options.cpus - 1) if options.pin else f"0-{options.cpus - 1}"
    admission = "forced" if scheduler.forced else "default"
    return ["run", "rt", run, launch, f"/plan/{run}.json", mask, admission, str(options.hogs), str(delay), *declared]


# No multiple of a tick: an icount guest is so regular that whoever wakes up in step with ticks
# meets the same moment every time, and which one that is, is chance.
WAKE_EVERY_US = 1937


def call(options, name, repeat, folder):
    if options.kind == "rt":
        return rt_call(options, name, repeat, folder)
    scheduler = scheduler_named(name)
    line = ["run", options.kind, run_name(name, repeat), scheduler.launch]
    kind_call = throughput_call if options.kind == "throughput" else latency_call
    return line + kind_call(options, name, repeat, folder)


def beside(options, name, repeat, folder, window_s):
    """rt-app's jobs for so long, beside what is measured."""
    scheduler, file, delay = scheduler_named(name), f"{run_name(name, repeat)}.json", delay_s(options)
    runtimes_us = workload.declared_runtimes_us(options.tasks, stretch(options))
    text = workload.rtapp_file(
        options.tasks, scheduler.policy, delay * 1_000_000, window_s, offsets_us(options, repeat), runtimes_us
    )
    (folder / file).write_text(text)
    return [f"/plan/{file}", str(delay)] + (hints(options, runtimes_us) if scheduler.declares else [])


def throughput_call(options, name, repeat, folder):
    line = [str(options.cpus), str(options.seconds), str(hackbench_messages(options))]
    if not options.tasks:
        return line
    # How long the messages take is not known: the jobs end when they are told to.
    return line + beside(options, name, repeat, folder, 30 * options.seconds)


def latency_call(options, name, repeat, folder):
    """Threads that meet on each CPU beside a hog, or one each beside rt-app's jobs."""
    scheduler, busy = scheduler_named(name), bool(options.tasks)
    threads, hogs = (options.cpus, 0) if busy else (2 * options.cpus, options.cpus)
    line = [str(threads), str(hogs), str(options.seconds), str(WAKE_EVERY_US)]
    line += [f"200:1000:{WAKE_EVERY_US}" if scheduler.declares else ""]
    if not busy:
        return line
    # They begin before cyclictest does, and end after it.
    return line + beside(options, name, repeat, folder, options.seconds + 3)


def write_plan(options, repeats, folder):
    lines = [". /plan/measure.sh"]
    if options.tasks:
        lines.append("calibrate")
    for repeat in repeats:
        lines += [shlex.join(call(options, name, repeat, folder)) for name in options.schedulers]
    (folder / "plan.sh").write_text("\n".join(lines) + "\n")
    shutil.copy(SCRIPTS / "guest" / "measure.sh", folder)


def onnxruntime():
    """Options of scripts/vm that take it along."""
    command = ["bash", "-euc", '. "$0"; onnxruntime_in_guest', SCRIPTS / "lib.sh"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:-1]


def host_seconds(options, repeats):
    """Far more than it takes, even on a busy host; floats are slow in a guest."""
    # Throughput is measured in two ways, one after the other.
    measured = options.seconds * (2 if options.kind == "throughput" else 1)
    each = measured + (delay_s(options) if options.tasks else 0) + 3
    infers = any(scheduler_named(name).infers for name in options.schedulers)
    return 600 + (40 if infers else 8) * each * len(options.schedulers) * len(repeats)


class GuestFailed(Exception):
    pass


RUNNING = set()


@contextlib.contextmanager
def started(command):
    """The process of a command, which does not outlive us."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        RUNNING.add(process)
        try:
            yield process
        except BaseException:
            process.terminate()
            raise
        finally:
            RUNNING.discard(process)


def boot(options, repeats, folder, out):
    """Runs the plan in the guest; each line it prints is a run that starts."""
    command = [SCRIPTS / "vm", "--mode", "icount", "--kernel", options.kernel, "--cpus", str(options.cpus), "--mem", options.mem]
    command += ["--timeout", str(host_seconds(options, repeats)), "--out", out, "--add", f"{folder}:/plan"]
    schedulers = [scheduler_named(name) for name in options.schedulers]
    if options.no_fma or any(s.infers for s in schedulers):
        command.append("--no-fma")
    if any(s.runtime for s in schedulers):
        command += onnxruntime()
    if options.program:
        command += ["--program", options.program]
    total = len(options.schedulers) * len(repeats)
    with started(command + ["--", "bash", "/plan/plan.sh"]) as guest:
        for number, line in enumerate(guest.stdout, 1):
            print(f"compare: {options.case}: run {number} of {total}: {line.strip()}", file=sys.stderr)
    if guest.returncode:
        raise GuestFailed(f"the guest ended with status {guest.returncode}")
