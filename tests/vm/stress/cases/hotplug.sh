#!/bin/bash
# CPUs go and come back in a loop under load; declarations outlive every restart.
#: mode fast
#: timeout 900
. "$(dirname "$0")/../lib.sh"
LOADS=any
# While it restarts, the kernel's own scheduler is in charge and knows no deadlines.
COMPLIANCE_FLOOR=0.5
switch=/sys/devices/system/cpu/cpu$LAST_CPU/online
[[ -w $switch ]] || skip "no CPU can be taken offline"
begin
stress-ng --quiet --cpu $((CPUS * 2)) --switch 2 --timer 1 &
load=$!
rounds=0
until=$((SECONDS + LOAD_S * 2))
attached() { grep -c 'scheduling [0-9]* CPU' "$SCHEDULER_LOG"; }
attached_after() { scheduler_is_gone || { scx_is enabled && (($(attached) > $1)); }; }
while ((rounds < 2 || SECONDS < until)); do
    for state in 0 1; do
        before=$(attached)
        echo $state >"$switch"
        wait_for 400 attached_after "$before" || fail "not loaded again after CPU $LAST_CPU went to $state"
    done
    rounds=$((rounds + 1))
done
say "$rounds rounds"
assert_match "$(scx_temponet hint --show --pid "${sentinels[free]}")" '10 ?ms' "the declaration after $rounds rounds"
dismiss $load
finish
