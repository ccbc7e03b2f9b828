#!/bin/bash
# A fork bomb that a pids cgroup holds to 500 processes.
. "$(dirname "$0")/../lib.sh"
box=$(make_cgroup bomb)
echo 500 >"$box/pids.max"
begin
# shellcheck disable=SC2016
bash -c 'echo $$ >"$0/cgroup.procs"; bomb() { bomb | bomb & }; bomb; wait' "$box" 2>/dev/null &
sleep "$LOAD_S"
assert_ge "$(cat "$box/pids.peak" 2>/dev/null || cat "$box/pids.current")" 100 "processes of the bomb"
echo 1 >"$box/cgroup.kill"
empty() { [[ ! -s $box/cgroup.procs ]]; }
wait_for 60 empty || fail "processes of the bomb are lost: $(wc -l <"$box/cgroup.procs")"
finish
