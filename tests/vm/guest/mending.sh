#!/bin/bash
# Tasks are queued for wrong cache domains and counted wrong, on purpose: the patrol finds both,
# mends and counts them, and nobody waits beyond the bound.
. "$(dirname "$0")/lib.sh"
(($(nproc) >= 4)) || skip "four CPUs are needed"

start_scheduler --stats 1 --misplace 200 --miscount 200
spin='while :; do :; done'
for place in 0,1 0,1 0,1 2,3 2,3 2,3; do
    taskset -c $place bash -c "$spin" &
    all+=($!)
done
for place in 0,1 2,3; do
    taskset -c $place bash -c 'while :; do sleep 0.01; done' &
    all+=($!)
done
sleep 15
kill "${all[@]}"
wait "${all[@]}" 2>/dev/null || true
# A count is mended when its queue is quiet, by a CPU that is not idle.
bash -c "$spin" &
sleep 6
kill $!
sleep 2
misplaced=$(figure .misplaced) drifted=$(figure .drifted)
printf 'mended: %s misplaced, %s counts\n' "$misplaced" "$drifted"
if [[ $(cat /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list) != "$(cat /sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list)" ]]; then
    assert_ge "$misplaced" 1 "misplaced tasks that were moved"
fi
assert_ge "$drifted" 1 "wrong counts that were mended"
assert_waits $BOUND_MS
stop_scheduler
