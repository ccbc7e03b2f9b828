#!/bin/bash
# Whatever becomes of the agent: no stall, nobody waits past the bound, and the
# figures tell what happened.
. "$(dirname "$0")/lib.sh"
BOUND_MS=4000

start_load() {
    load=()
    for ((i = 0; i < 3; i++)); do
        taskset -c 0 bash -c 'while :; do :; done' &
        scx_temponet hint --runtime 4ms --deadline 10ms --period 10ms --pid $!
        load+=($!)
    done
    nice -n 19 taskset -c 0 bash -c 'while :; do :; done' &
    load+=($!)
}

# level: how often the say came to somebody, from --stats.
came_to() { grep -o " to $1 [0-9]*" "$SCHEDULER_LOG" | awk '{ sum += $3 } END { print sum + 0 }'; }

# check WHAT: all is well with the load running.
check() {
    scx_is enabled || fail "$1: thrown out"
    timeout 30 bash -c 'for ((i = 0; i < 10; i++)); do /bin/true; done' || fail "$1: a newcomer starved"
    kill "${load[@]}"
    wait "${load[@]}" || true
    sleep 2
    for class in declared inferred background late; do
        assert_le "$(figure $class wait_max_ms)" $BOUND_MS "$1: longest wait in class $class"
    done
    stop_scheduler
}

for fault in garbage silence deaf; do
    start_scheduler --policy temponet --hint-util-max 2 --stats 1 --misbehave $fault
    start_load
    sleep 8
    check "$fault"
    case $fault in
        silence) assert_ge "$(came_to q-table)" 1 "changes to the Q-table" ;;
        deaf) assert_ge "$(came_to q-table)" 1 "changes to the Q-table" ;;
    esac
done

# Stopped for ten seconds: Q-table, then distilled rule, then deadlines, and back.
start_scheduler --policy temponet --hint-util-max 2 --stats 1
start_load
sleep 2
kill -STOP "$scheduler_pid"
sleep 12
scx_is enabled || fail "thrown out while the program was stopped"
kill -CONT "$scheduler_pid"
sleep 3
for level in q-table distilled edf agent; do
    assert_ge "$(came_to $level)" 1 "changes to $level"
done
check "stopped"

# Killed: the kernel's own scheduler takes over, tasks go on.
start_scheduler --policy temponet --hint-util-max 2 --stats 1
start_load
sleep 1
kill -KILL "$scheduler_pid"
wait_for 5 scx_is disabled || fail "still $(scx_state) after SIGKILL"
wait "$scheduler_pid" || true
scheduler_pid=''
kill "${load[@]}"
wait "${load[@]}" || true
