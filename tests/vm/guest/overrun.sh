#!/bin/bash
# Declaring little does not buy much: a task that takes far more in every period than it
# declared has the rest like anybody.
#: again icount
. "$(dirname "$0")/lib.sh"

start_scheduler --policy edf --stats 1
# 40 of every 200 ms, where 2 are declared.
taskset -c 0 bash -c '
    while :; do
        until=$((${EPOCHREALTIME/./} + 40000))
        while ((${EPOCHREALTIME/./} < until)); do :; done
        sleep 0.16
    done' &
greedy=$!
scx_temponet hint --runtime 2ms --period 200ms --pid $greedy
cpu_ms() { awk '{ print 10 * ($14 + $15) }' "/proc/$greedy/stat"; }
before=$(cpu_ms)
sleep 16
had=$(($(cpu_ms) - before))
as_declared=$(figure .classes.declared.run_ms)
stop_scheduler
assert_ge "$had" 800 "ms on a CPU in 16 s"
# What it may be forgiven, and a tick for each time that this is noticed.
assert_ge "$as_declared" 50 "of these, ms as a declared job"
assert_le "$as_declared" $((had / 5)) "of $had ms on a CPU, those as a declared job"
