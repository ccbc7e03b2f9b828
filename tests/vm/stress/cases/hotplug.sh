#!/bin/bash
# CPUs go and come back in a loop under load; the scheduler stays loaded, and declarations stay.
#: mode fast
#: timeout 900
. "$(dirname "$0")/../lib.sh"
switch=/sys/devices/system/cpu/cpu$LAST_CPU/online
[[ -w $switch ]] || skip "no CPU can be taken offline"
begin
stress-ng --quiet --cpu $((CPUS * 2)) --switch 2 --timer 1 &
load=$!
rounds=0
until=$((SECONDS + LOAD_S * 2))
# The daemon has heard of it.
followed() { grep -c 'scheduling [0-9]* CPU' "$SCHEDULER_LOG"; }
followed_after() { scheduler_is_gone || (($(followed) > $1)); }
while ((rounds < 2 || SECONDS < until)); do
    for state in 0 1; do
        before=$(followed)
        within 60 bash -c "echo $state >$switch" || fail "CPU $LAST_CPU did not go to $state in 60 s"
        wait_for 30 followed_after "$before" || fail "the daemon does not know that CPU $LAST_CPU went to $state"
    done
    rounds=$((rounds + 1))
done
say "$rounds rounds"
assert_match "$(scx_temponet hint --show --pid "${sentinels[free]}")" '10 ?ms' "the declaration after $rounds rounds"
dismiss $load
finish
