#!/bin/bash
# 2,000 tasks that want to run, all at once.
#: mem 2G
#: alone yes
#: timeout 600
. "$(dirname "$0")/../lib.sh"
CROWD=2000
WAIT_BOUND_MS=$(wait_bound_ms $((CROWD / CPUS)))
box=$(make_cgroup crowd)
# What ends grace periods runs several times in each, and Linux waits for 21 s at most. In
# line with the crowd it waited for 0.2 to 4 s at a time. It may have to wait for two declared
# jobs and the next tick.
RCU_WAIT_MS=50
rcu=$(grep -lxE 'rcu_(preempt|sched)' /proc/[0-9]*/comm | cut -d/ -f3)
# Its longest wait, in ns: what a wait adds to its sum when it ends, in a tenth of a second.
# It waits for what never comes instead of a `sleep`, each of which would take its time from all.
watch_rcu() {
    local before now never most=0
    exec {never}<> <(:)
    read -r _ before _ <"/proc/$rcu/schedstat"
    while :; do
        read -r -t 0.1 -u "$never" || true
        read -r _ now _ <"/proc/$rcu/schedstat"
        if ((now - before > most)); then
            most=$((now - before))
            echo $most >/tmp/rcu_wait
        fi
        before=$now
    done
}
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
watch_rcu &
watcher_of_rcu=$!
chrt -f -p 90 $watcher_of_rcu
echo 0 >"$box/cgroup.freeze"
sleep "$LOAD_S"
dismiss $watcher_of_rcu
rcu_wait_ms=$(($(cat /tmp/rcu_wait) / 1000000))
say "RCU waited for $rcu_wait_ms ms at most"
started=$SECONDS
timeout 120 /bin/true || fail "a newcomer starved"
say "a newcomer was done after $((SECONDS - started)) s"
assert_eq "$(here)" $CROWD "tasks of the crowd in the end"
echo 1 >"$box/cgroup.kill"
all_gone() { (($(here) == 0)); }
wait_for 120 all_gone || fail "$(here) of the crowd did not go"
finish
assert_le $rcu_wait_ms $((RCU_WAIT_MS + 2 * host_stall_ms)) "ms that RCU waited at most"
