#!/bin/bash
# 2,000 tasks that want to run, all at once.
#: mem 2G
#: timeout 600
. "$(dirname "$0")/../lib.sh"
CROWD=2000
WAIT_BOUND_MS=$(wait_bound_ms $((CROWD / CPUS)))
box=$(make_cgroup crowd)
# What ends grace periods runs several times in each, and Linux waits for 21 s at most. In
# line with the crowd it waited for seconds each time.
RCU_WAIT_MS=250
rcu=$(grep -lxE 'rcu_(preempt|sched)' /proc/[0-9]*/comm | cut -d/ -f3)
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
read -r _ waited turns <"/proc/$rcu/schedstat"
echo 0 >"$box/cgroup.freeze"
sleep "$LOAD_S"
read -r _ waited_now turns_now <"/proc/$rcu/schedstat"
turns=$((turns_now - turns)) waited=$(((waited_now - waited) / 1000000))
say "RCU waited for $waited ms in $turns turns"
assert_ge $turns 10 "turns of RCU"
assert_le $((waited / turns)) $RCU_WAIT_MS "ms that RCU waited for each"
started=$SECONDS
timeout 120 /bin/true || fail "a newcomer starved"
say "a newcomer was done after $((SECONDS - started)) s"
assert_eq "$(here)" $CROWD "tasks of the crowd in the end"
echo 1 >"$box/cgroup.kill"
all_gone() { (($(here) == 0)); }
wait_for 120 all_gone || fail "$(here) of the crowd did not go"
finish
