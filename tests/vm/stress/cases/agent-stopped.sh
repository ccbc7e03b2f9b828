#!/bin/bash
# The agent is stopped for longer than the watchdog's patience: scheduling goes on without it.
. "$(dirname "$0")/../lib.sh"
begin
spin $((CPUS * 4))
kill -STOP "$scheduler_pid"
sleep 25
assert_eq "$(scx_state)" enabled "state with the agent stopped"
kill -CONT "$scheduler_pid"
stop_spinning
finish
