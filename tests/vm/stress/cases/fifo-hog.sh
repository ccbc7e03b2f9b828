#!/bin/bash
# SCHED_FIFO hogs own a CPU: throttled as Linux does by default, and for 8 s entirely.
. "$(dirname "$0")/../lib.sh"
# What is pinned to that CPU has what real-time throttling leaves: 50 ms a second.
COMPLIANCE_FLOOR_PINNED=0
WAIT_BOUND_MS=12000
begin
spin $((CPUS * 2))
chrt -f 50 taskset -c "$LAST_CPU" bash -c 'while :; do :; done' &
owner=$!
sleep "$LOAD_S"
sysctl -q -w kernel.sched_rt_runtime_us=-1
sleep 8
sysctl -q -w kernel.sched_rt_runtime_us=950000
kill -KILL $owner
reap $owner
stop_spinning
finish
