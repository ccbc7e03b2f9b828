#!/bin/bash
# A crowd waits: nice-19 hogs beside declared tasks that claim every CPU. Each of
# them runs within the bound, and so does a newcomer.
. "$(dirname "$0")/lib.sh"
HOGS=100

start_scheduler --stats 1
spin='while :; do :; done'
for ((i = 0; i < HOGS; i++)); do
    nice -n 19 bash -c "$spin" &
    crowd+=($!)
done
for cpu in 0 1; do
    taskset -c $cpu bash -c "$spin" &
    scx_temponet hint --runtime 9ms --deadline 10ms --period 10ms --pid $!
    greedy+=($!)
done
sleep 15
timeout 30 /bin/true || fail "a newcomer starved"
kill "${greedy[@]}" "${crowd[@]}"
wait "${greedy[@]}" "${crowd[@]}" || true
sleep 2
assert_waits $BOUND_MS
stop_scheduler
