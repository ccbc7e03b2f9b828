#!/bin/bash
# CPUs come and go: the scheduler restarts by itself and keeps what was
# declared.
. "$(dirname "$0")/lib.sh"

[[ -w /sys/devices/system/cpu/cpu1/online ]] || skip "CPU 1 cannot be taken offline"
start_scheduler
sleep 60 &
sleeper=$!
scx_temponet hint --runtime 5ms --deadline 40ms --period 40ms --pid $sleeper
restarts() { grep -c 'scheduling [0-9]* CPU' "$SCHEDULER_LOG"; }
restarted() { scx_is enabled && (($(restarts) >= $1)); }
echo 0 >/sys/devices/system/cpu/cpu1/online
wait_for 30 restarted 2 || fail "no restart after CPU 1 went"
stress-ng --quiet --cpu 2 --timeout 2s
echo 1 >/sys/devices/system/cpu/cpu1/online
wait_for 30 restarted 3 || fail "no restart after CPU 1 came"
stress-ng --quiet --cpu 2 --timeout 2s
assert_match "$(scx_temponet hint --show --pid $sleeper)" '5 ?ms' "the declaration after two restarts"
kill $sleeper
stop_scheduler
assert_eq "$scheduler_status" 0 "exit status"
