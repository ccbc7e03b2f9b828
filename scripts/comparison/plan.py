"""What the guest is to do, as a script for it, and the guest that does it."""

import contextlib
import os
import pathlib
import random
import re
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
    if options.kind == "throughput":
        return line + [str(options.cpus), str(options.seconds)]
    return line + latency_call(options, name, repeat, folder)


def latency_call(options, name, repeat, folder):
    """Threads that meet on each CPU beside a hog, or one each beside rt-app's jobs."""
    scheduler, busy = scheduler_named(name), bool(options.tasks)
    threads, hogs = (options.cpus, 0) if busy else (2 * options.cpus, options.cpus)
    line = [str(threads), str(hogs), str(options.seconds), str(WAKE_EVERY_US)]
    line += [f"200:1000:{WAKE_EVERY_US}" if scheduler.declares else ""]
    if not busy:
        return line
    file, delay = f"{run_name(name, repeat)}.json", delay_s(options)
    runtimes_us = workload.declared_runtimes_us(options.tasks, stretch(options))
    # They begin before cyclictest does, and end after it.
    text = workload.rtapp_file(
        options.tasks, scheduler.policy, delay * 1_000_000, options.seconds + 3, offsets_us(options, repeat), runtimes_us
    )
    (folder / file).write_text(text)
    return line + [f"/plan/{file}", str(delay)] + (hints(options, runtimes_us) if scheduler.declares else [])


def write_plan(options, repeats, folder):
    lines = [". /plan/measure.sh"]
    if options.tasks:
        lines.append("calibrate")
    for repeat in repeats:
        lines += [shlex.join(call(options, name, repeat, folder)) for name in options.schedulers]
    (folder / "plan.sh").write_text("\n".join(lines) + "\n")
    shutil.copy(SCRIPTS / "guest" / "measure.sh", folder)


def onnxruntime():
    """ONNX Runtime and what it is linked with, as scripts/vm takes files along."""
    library = os.environ.get("ORT_DYLIB_PATH")
    if not library:
        done = subprocess.run([SCRIPTS / "setup.sh", "ort"], stdout=subprocess.PIPE, text=True, check=True)
        library = done.stdout.strip()
    linked = subprocess.run(["ldd", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [f"{library}:/usr/lib/libonnxruntime.so"] + re.findall(r"=> (/\S+)", linked)


def host_seconds(options, repeats):
    """Far more than it takes, even on a busy host; floats are slow in a guest."""
    each = options.seconds + (delay_s(options) + 3 if options.kind == "rt" else 3)
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
        for add in onnxruntime():
            command += ["--add", add if ":" in add else f"{add}:{add}"]
    if options.program:
        command += ["--program", options.program]
    total = len(options.schedulers) * len(repeats)
    with started(command + ["--", "bash", "/plan/plan.sh"]) as guest:
        for number, line in enumerate(guest.stdout, 1):
            print(f"compare: {options.case}: run {number} of {total}: {line.strip()}", file=sys.stderr)
    if guest.returncode:
        raise GuestFailed(f"the guest ended with status {guest.returncode}")
