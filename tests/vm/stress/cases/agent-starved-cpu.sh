#!/bin/bash
# The agent at nice 19 in a cgroup of weight 1 beside hogs at nice -20: quality may go, progress not.
. "$(dirname "$0")/../lib.sh"
box=$(make_cgroup agent-box)
echo 1 >"$box/cpu.weight"
expect_rivals
begin
start_rivals
echo "$scheduler_pid" >"$box/cgroup.procs"
renice -n 19 -p "$scheduler_pid" >/dev/null
spin $((CPUS * 10)) nice -n -20
sleep "$LOAD_S"
# Who asks is not starved.
nice -n -20 timeout 60 scx_temponet hint --show --pid $$ >/dev/null || fail "the agent no longer answers"
stop_spinning
echo "$scheduler_pid" >/sys/fs/cgroup/cgroup.procs
rmdir "$box"
finish
