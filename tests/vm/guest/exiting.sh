#!/bin/bash
# Tasks with much to clean up exit beside a declared task on the same CPU. They get
# there, and the declared task does not wait for them.
. "$(dirname "$0")/lib.sh"
BOUND_MS=4000

start_scheduler --stats 1
mkfifo /tmp/never
taskset -c 1 bash -c 'exec 3<>/tmp/never; while :; do read -r -t 0.004 -u 3; for ((i = 0; i < 300; i++)); do :; done; done' &
declared=$!
scx_temponet hint --runtime 3ms --deadline 5ms --period 5ms --pid $declared
for round in 1 2 3 4 5; do
    taskset -c 1 timeout -k 1 20 stress-ng --quiet --vm 2 --vm-bytes 48M --vm-keep --vm-ops 20 --fork 2 --fork-ops 50 ||
        fail "round $round: status $?"
done
kill $declared
wait $declared || true
scheduler_is_gone && fail "the scheduler ended by itself"
sleep 2
for class in declared inferred background late; do
    assert_le "$(figure $class wait_max_ms)" $BOUND_MS "longest wait in class $class"
done
stop_scheduler
rm /tmp/never
