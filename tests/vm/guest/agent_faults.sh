#!/bin/bash
# Whatever becomes of the agent: no stall, nobody waits past the bound, and the
# figures tell what happened.
#: again icount
. "$(dirname "$0")/lib.sh"

write_rivals
# Many short jobs of the same tasks: thousands of records a second.
sed 's/"instance": 4/"instance": 12/; s/"runtime": 12000/"runtime": 100/; s/40000/10000/' /tmp/rivals.json >/tmp/chatter.json

# start_load [WORKLOAD]: the rivals, and a hog for the rest.
start_load() {
    rt-app "${1:-/tmp/rivals.json}" >/tmp/rt-app.txt 2>&1 &
    load=($!)
    nice -n 19 taskset -c 0 bash -c 'while :; do :; done' &
    load+=($!)
}

has_lost() { (($(figure .agent.ring_drops) > 0)); }

# check WHAT: all is well with the load running.
check() {
    scx_is enabled || fail "$1: thrown out"
    timeout 30 bash -c 'for ((i = 0; i < 10; i++)); do /bin/true; done' || fail "$1: a newcomer starved"
    kill "${load[@]}"
    wait "${load[@]}" || true
    sleep 2
    assert_waits $BOUND_MS "$1: "
    stop_scheduler
}

for fault in garbage silence deaf; do
    start_scheduler --policy temponet --rules /tmp/rules.toml --stats 1 --misbehave $fault
    start_load "$(if [[ $fault == deaf ]]; then echo /tmp/chatter.json; else echo /tmp/rivals.json; fi)"
    sleep 9
    # A slow guest may be longer about it.
    if [[ $fault == deaf ]]; then wait_for 30 has_lost || true; fi
    case $fault in
        garbage) assert_ge "$(figure '.agent | .stale + .impossible')" 1 "garbage: decisions that were ignored" ;;
        deaf)
            assert_ge "$(figure .agent.ring_drops)" 1 "deaf: records for which the ring had no room"
            assert_ge "$(figure .agent.resyncs)" 1 "deaf: times the agent read anew how all tasks stand"
            ;;&
        *) assert_ge "$(figure '.agent.transitions | ."q-table" + .distilled + .edf')" 1 "$fault: times that something else came to decide" ;;
    esac
    check "$fault"
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
for level in q-table distilled edf; do assert_ge "$(came_to $level)" 1 "stopped: times that it came to decide: $level"; done
assert_ge "$(came_to agent)" 1 "stopped: times the agent was back"
assert_ge "$(figure .q_table)" 1 "stopped: dispatches by the Q-table"
assert_ge "$(figure .distilled)" 10 "stopped: dispatches by the distilled rule"
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
