#!/bin/bash
# The scheduler loads with no argument, carries a mixed load, and leaves on
# SIGINT with the kernel's own scheduler back.
. "$(dirname "$0")/lib.sh"

assert_eq "$(scx_state)" disabled "state before"
start_scheduler
assert_match "$(scx_ops)" '^temponet' "name of the loaded scheduler"
stress-ng --quiet --cpu 2 --switch 2 --timer 1 --timeout 4s || fail "stress-ng ended with status $?"
scheduler_is_gone && fail "the scheduler ended by itself"
assert_eq "$(scx_state)" enabled "state under load"
stop_scheduler
assert_eq "$scheduler_status" 0 "exit status after SIGINT"
assert_eq "$(scx_state)" disabled "state after"
