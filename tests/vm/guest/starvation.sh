#!/bin/bash
# Nobody starves: declared tasks that never sleep claim every CPU, and nice-19
# hogs beside them still run within the documented bound.
#: mode icount
. "$(dirname "$0")/lib.sh"

start_scheduler --stats 1
spin='while :; do :; done'
for cpu in 0 1; do
    taskset -c $cpu bash -c "$spin" &
    scx_temponet hint --runtime 9ms --deadline 10ms --period 10ms --pid $!
    greedy+=($!)
done
for cpu in 0 1 0 1; do
    nice -n 19 taskset -c $cpu bash -c "$spin" &
    poor+=($!)
done
nice -n 19 bash -c "$spin" &
poor+=($!)
sleep 15
# utime + stime, in ticks.
cpu_time() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
total() { local sum=0 pid; for pid; do sum=$((sum + $(cpu_time "$pid"))); done; echo $sum; }
# 0.9 of a CPU each was declared; what is left is shared by all.
assert_ge "$(total "${greedy[@]}")" $(($(total "${poor[@]}") * 2)) "CPU ticks of the declared tasks"
for pid in "${poor[@]}"; do assert_ge "$(cpu_time "$pid")" 1 "CPU ticks of hog $pid"; done
# New tasks get in too.
timeout 30 bash -c 'for ((i = 0; i < 20; i++)); do /bin/true; done' || fail "new tasks starved"
kill "${greedy[@]}" "${poor[@]}"
wait "${greedy[@]}" "${poor[@]}" || true
sleep 2
assert_waits $BOUND_MS
stop_scheduler
