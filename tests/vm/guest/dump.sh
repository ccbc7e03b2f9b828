#!/bin/bash
# What the kernel prints of a scheduler that it ejects says where each task stands. Sysrq-D
# prints the same of one that works.
. "$(dirname "$0")/lib.sh"
events=/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable
[[ -w $events ]] || skip "this kernel has no trace of the dump"

start_scheduler
for ((i = 0; i < 4; i++)); do
    taskset -c 0 bash -c 'while :; do :; done' &
    all+=($!)
done
scx_temponet hint --runtime 5ms --deadline 40ms --period 40ms --pid "${all[0]}"
sleep 1
echo 1 >$events
echo D >/proc/sysrq-trigger
sleep 1
trace=$(cat /sys/kernel/tracing/trace)
kill "${all[@]}"
wait "${all[@]}" 2>/dev/null || true
for what in 'level [0-9]+, agent [0-9]+' 'CPU 0 tier [0-3]: [0-9]+ counted, [0-9]+ queued, served [0-9]+ us ago' \
    'runs tier [0-3], key' 'tier 3 .*waits [0-9]+ us, verdict' 'deadline in -?[0-9]+ us'; do
    assert_match "$trace" "$what" "the dump"
done
stop_scheduler
