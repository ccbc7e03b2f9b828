#!/bin/bash
# sched_yield() ends a declared task's job, as it does under SCHED_DEADLINE. A task that does
# nothing else has a job a period, each done at once; without that, each would last until its
# budget is used up.
#: mode icount
. "$(dirname "$0")/lib.sh"

start_scheduler --stats 1 --policy edf
stress-ng --quiet --yield 1 --timeout 60s &
load=$!
yielder() { pgrep -f 'stress-ng-yield' | head -n 1; }
wait_for 20 yielder >/dev/null || fail "no task yields"
scx_temponet hint --runtime 10ms --deadline 40ms --period 40ms --pid "$(yielder)"
sleep 6
kill $load
wait $load 2>/dev/null || true
stop_scheduler
# Of the last whole seconds: jobs, and their mean response time.
read -r jobs response < <(awk '$1 == "declared" { met[++n] = $2; ms[n] = $4 } END { print met[n - 2] + 0, ms[n - 2] + 0 }' "$SCHEDULER_LOG")
assert_ge "$jobs" 20 "jobs on time in a second of a task with a period of 40 ms"
assert_le "$response" 5 "mean response (ms) of a task that yields at once"
