#!/bin/bash
# CPUs come and go: the scheduler stays loaded, nobody who waited for a CPU that went is lost,
# and what was declared stays in force.
. "$(dirname "$0")/lib.sh"
last=$(($(nproc) - 1))
switch=/sys/devices/system/cpu/cpu$last/online
[[ -w $switch ]] || skip "CPU $last cannot be taken offline"

start_scheduler --stats 1
loads=$(cat $SCX/enable_seq)
sleep 600 &
sleeper=$!
scx_temponet hint --runtime 5ms --deadline 40ms --period 40ms --pid $sleeper
spin='while :; do :; done'
# Bound to the CPU that goes: one runs, the others wait in its own queues.
for ((i = 0; i < 3; i++)); do
    taskset -c "$last" bash -c "$spin" &
    all+=($!)
done
for ((i = 0; i <= last; i++)); do
    bash -c "$spin" &
    all+=($!)
done
daemon_heard() { grep -c "CPU $last $1" "$SCHEDULER_LOG" || true; }
cpu_time() { cut -d' ' -f1 "/proc/$1/schedstat"; }
everybody_runs() {
    local -A had=()
    local pid
    for pid in "${all[@]}"; do had[$pid]=$(cpu_time "$pid"); done
    sleep 5
    for pid in "${all[@]}"; do assert_ge "$(cpu_time "$pid")" $((had[$pid] + 1000)) "CPU time (ns) of hog $pid 5 s after $1"; done
}
for round in 1 2; do
    timeout 60 bash -c "echo 0 >$switch" || fail "CPU $last did not go offline in 60 s (round $round)"
    everybody_runs "CPU $last went"
    assert_eq "$(daemon_heard "went offline")" "$round" "times that the daemon heard of CPU $last going"
    timeout 60 bash -c "echo 1 >$switch" || fail "CPU $last did not come back in 60 s (round $round)"
    # It is used again: the kernel set its hogs free, so bind them anew.
    for pid in "${all[@]:0:3}"; do taskset -p -c "$last" "$pid" >/dev/null; done
    everybody_runs "CPU $last came"
    assert_eq "$(daemon_heard "came online")" "$round" "times that the daemon heard of CPU $last coming"
done
assert_eq "$(cat $SCX/enable_seq)" "$loads" "schedulers loaded"
assert_match "$(scx_temponet hint --show --pid $sleeper)" '5 ?ms' "the declaration after CPU $last went and came"
kill "${all[@]}" $sleeper
wait "${all[@]}" $sleeper 2>/dev/null || true
sleep 2
assert_waits $BOUND_MS
stop_scheduler
assert_eq "$scheduler_status" 0 "exit status"
