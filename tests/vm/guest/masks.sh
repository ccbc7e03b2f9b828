#!/bin/bash
# A task may use two CPUs of four, and declared tasks want more than there is of both;
# the others serve the queue it waits in all the time. It must not wait for ever.
. "$(dirname "$0")/lib.sh"
(($(nproc) >= 4)) || skip "four CPUs are needed"

start_scheduler --stats 1
spin='while :; do :; done'
for cpu in 2 2 3 3; do
    taskset -c $cpu bash -c "$spin" &
    scx_temponet hint --runtime 60ms --deadline 100ms --period 100ms --pid $!
    all+=($!)
done
for ((i = 0; i < 4; i++)); do
    bash -c "$spin" &
    all+=($!)
done
taskset -c 2,3 bash -c "$spin" &
confined=$!
# Nanoseconds: its turns may be shorter than a tick.
cpu_time() { cut -d' ' -f1 "/proc/$1/schedstat"; }
for ((i = 0; i < 3; i++)); do
    had=$(cpu_time $confined)
    sleep 6
    assert_ge "$(cpu_time $confined)" $((had + 1000)) "CPU time (ns) of the confined task after another 6 s"
done
kill "${all[@]}" $confined
wait "${all[@]}" $confined || true
sleep 2
assert_waits $BOUND_MS
stop_scheduler
