#!/bin/bash
# A crowd waits: 400 nice-19 hogs beside declared tasks that claim every CPU.
# Each of them runs within the bound, and so does a newcomer.
. "$(dirname "$0")/lib.sh"
BOUND_MS=4000
HOGS=400

start_scheduler --stats 1
for cpu in 0 1; do
    taskset -c $cpu bash -c 'while :; do :; done' &
    scx_temponet hint --runtime 9ms --deadline 10ms --period 10ms --pid $!
    greedy+=($!)
done
nice -n 19 stress-ng --quiet --cpu $HOGS --cpu-method int64 --timeout 200s &
crowd=$!
# Forking them all takes its time beside tasks that claim every CPU.
crowd_is_there() { (($(pgrep -c stress-ng) > HOGS)); }
wait_for 60 crowd_is_there || fail "only $(pgrep -c stress-ng) hogs after a minute"
sleep 12
timeout 30 /bin/true || fail "a newcomer starved"
kill "${greedy[@]}" "$crowd"
wait "${greedy[@]}" "$crowd" || true
sleep 2
for class in declared inferred background late; do
    assert_le "$(figure $class wait_max_ms)" $BOUND_MS "longest wait in class $class"
done
stop_scheduler
