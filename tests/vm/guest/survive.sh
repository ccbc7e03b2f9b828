#!/bin/bash
# The program stopped: the scheduler goes on. Killed: the kernel's own is back
# within a second. A second one is refused in a sentence.
#: again icount
. "$(dirname "$0")/lib.sh"

start_scheduler --stats 1
stress-ng --quiet --cpu 2 --switch 1 --timer 1 --timeout 600s &
load=$!

status=0
said=$(scx_temponet 2>&1) || status=$?
[[ $status != 0 ]] || fail "a second scheduler was let in"
assert_match "$said" 'end that one first' "what the second one was told"

kill -STOP "$scheduler_pid"
sleep 22 # longer than the watchdog allows a task to wait
assert_eq "$(scx_state)" enabled "state with the program stopped"
# Tasks are still scheduled: this one gets its turn among the hogs.
timeout 60 bash -c 'for ((i = 0; i < 40; i++)); do sleep 0.001; done' || fail "a short task starved"
kill -CONT "$scheduler_pid"
sleep 2
assert_ge "$(figure .classes.inferred.met)" 1 "jobs counted after it was continued"

# The host of a guest may take its CPUs away meanwhile: the best of three counts.
for ((took = 9000000, attempt = 0; took > 1000000 && attempt < 3; attempt++)); do
    [[ -n $scheduler_pid ]] || start_scheduler
    kill -KILL "$scheduler_pid"
    killed_at=${EPOCHREALTIME/./}
    wait_for 5 scx_is disabled || fail "still $(scx_state) after SIGKILL"
    took=$((${EPOCHREALTIME/./} - killed_at))
    wait "$scheduler_pid" || true
    scheduler_pid=''
done
assert_le $took 1000000 "us until the kernel's scheduler was back"
# What was left behind is in nobody's way.
start_scheduler
kill -ABRT "$scheduler_pid"
wait_for 5 scx_is disabled || fail "still $(scx_state) after a crash"
wait "$scheduler_pid" || true
scheduler_pid=''
kill $load
wait $load || true
