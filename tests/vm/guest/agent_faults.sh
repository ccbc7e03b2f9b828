#!/bin/bash
# Whatever becomes of the agent: no stall, nobody waits past the bound, and the
# figures tell what happened.
. "$(dirname "$0")/lib.sh"
BOUND_MS=4000

write_rivals
# The rivals, and a hog for the rest.
start_load() {
    rt-app /tmp/rivals.json >/tmp/rt-app.txt 2>&1 &
    load=($!)
    nice -n 19 taskset -c 0 bash -c 'while :; do :; done' &
    load+=($!)
}

# came_to LEVEL: how often the say came to it, from --stats.
came_to() { grep -o " to $1 [0-9]*" "$SCHEDULER_LOG" | awk '{ sum += $3 } END { print sum + 0 }'; }

# In how many of the seconds shown somebody else than the agent had the say.
passed_over() { grep -cE '^(q-table|distilled|edf) by' "$SCHEDULER_LOG" || true; }

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
    start_scheduler --policy temponet --rules /tmp/rules.toml --stats 1 --misbehave $fault
    start_load
    sleep 8
    check "$fault"
    [[ $fault == garbage ]] || assert_ge "$(passed_over)" 1 "$fault: seconds in which the agent was passed over"
done

# Stopped for ten seconds: Q-table, then distilled rule, then deadlines, and back.
start_scheduler --policy temponet --rules /tmp/rules.toml --stats 1
start_load
sleep 2
kill -STOP "$scheduler_pid"
sleep 13
scx_is enabled || fail "thrown out while the program was stopped"
kill -CONT "$scheduler_pid"
sleep 3
assert_ge "$(came_to edf)" 1 "stopped: times deadlines alone decided"
assert_ge "$(came_to agent)" 1 "stopped: times the agent was back"
check "stopped"

# Killed: the kernel's own scheduler takes over, tasks go on.
start_scheduler --policy temponet --rules /tmp/rules.toml --stats 1
start_load
sleep 1
kill -KILL "$scheduler_pid"
wait_for 5 scx_is disabled || fail "still $(scx_state) after SIGKILL"
wait "$scheduler_pid" || true
scheduler_pid=''
kill "${load[@]}"
wait "${load[@]}" || true
