#!/bin/bash
# The agent is stopped for longer than the watchdog's patience: scheduling goes on without it.
. "$(dirname "$0")/../lib.sh"
expect_rivals
OPTIONS+=(--stats 1)
begin
start_rivals
spin $((CPUS * 4))
sleep 2
kill -STOP "$scheduler_pid"
sleep 25
assert_eq "$(scx_state)" enabled "state with the agent stopped"
kill -CONT "$scheduler_pid"
sleep 3
# It was missed, and came back.
if [[ $POLICY == temponet ]]; then
    assert_ge "$(came_to edf)" 1 "times that deadlines alone decided"
    assert_ge "$(came_to agent)" 1 "times that the say came back to the agent"
fi
stop_spinning
finish
