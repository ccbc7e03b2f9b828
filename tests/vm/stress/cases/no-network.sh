#!/bin/bash
# The daemon has no socket that is not local, idle and under load.
. "$(dirname "$0")/../lib.sh"
begin
adversary sockets "$scheduler_pid" || fail "sockets beyond this machine"
run_to_end stress-ng --quiet -t 5 --cpu "$CPUS" --switch 1
adversary sockets "$scheduler_pid" || fail "sockets beyond this machine, after load"
finish
