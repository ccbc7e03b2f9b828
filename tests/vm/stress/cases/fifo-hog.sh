#!/bin/bash
# A SCHED_FIFO hog owns a CPU for seconds on end, throttled by Linux or not at all.
. "$(dirname "$0")/../lib.sh"
# What is pinned to that CPU has what real-time tasks leave. Where Linux keeps nothing of
# it for sched_ext nobody can help it, and the watchdog ejects whichever scheduler
# has a task there after its time, so the hog rests before that.
COMPLIANCE_FLOOR_PINNED=0
OWNED_S=12
WAIT_BOUND_MS=$(((OWNED_S + 4) * 1000))
begin
spin $((CPUS * 2))
for throttled in 950000 -1; do
    sysctl -q -w kernel.sched_rt_runtime_us=$throttled
    timeout $OWNED_S chrt -f 50 taskset -c "$LAST_CPU" bash -c 'while :; do :; done' || true
    sleep 3
done
sysctl -q -w kernel.sched_rt_runtime_us=950000
stop_spinning
finish
