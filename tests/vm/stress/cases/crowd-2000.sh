#!/bin/bash
# 2,000 tasks that want to run, all at once.
#: mem 2G
#: timeout 600
. "$(dirname "$0")/../lib.sh"
CROWD=2000
WAIT_BOUND_MS=$(wait_bound_ms $((CROWD / CPUS)))
box=$(make_cgroup crowd)
begin
# Frozen as they come, or the first would keep the last from ever being forked.
echo 1 >"$box/cgroup.freeze"
for ((i = 0; i < CROWD; i++)); do
    (
        echo 0 >"$box/cgroup.procs"
        while :; do :; done
    ) &
    disown
done
here() { wc -l <"$box/cgroup.procs"; }
all_here() { (($(here) == CROWD)); }
wait_for 120 all_here || fail "only $(here) tasks came to be"
echo 0 >"$box/cgroup.freeze"
sleep "$LOAD_S"
started=$SECONDS
timeout 120 /bin/true || fail "a newcomer starved"
say "a newcomer was done after $((SECONDS - started)) s"
assert_eq "$(here)" $CROWD "tasks of the crowd in the end"
echo 1 >"$box/cgroup.kill"
all_gone() { (($(here) == 0)); }
wait_for 120 all_gone || fail "$(here) of the crowd did not go"
finish
