#!/bin/bash
# replay --record: what ran, with the utilisation that the kernel counted, under any
# scheduler; written whole or not at all.
. "$(dirname "$0")/lib.sh"

# used NAME: seconds on a CPU of a task of the recording, as it was replayed.
used() {
    awk -v seconds="$seconds" -v name="\"name\": \"$1\"" '/"cpus_used"/ { used = $2 } index($0, name) { print used * seconds; exit }' /tmp/replayed.json
}
replayed() { scx_temponet replay "$1" --policy edf --json >/tmp/replayed.json 2>/dev/null || fail "$1 cannot be replayed"; }
# Seconds on a CPU by the kernel's own count, in ticks of 10 ms.
counted() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print ($12 + $13) / 100 }'; }
minus() { awk -v a="$1" -v b="$2" -v more="${3:-0}" 'BEGIN { print a - b + more }'; }

start_scheduler
bash -c 'while :; do :; done' &
hog=$!
bash -c 'while :; do sleep 0.05; for ((i = 0; i < 300; i++)); do :; done; done' &
sleep 1
# The recording lies between two that the kernel counted, whatever holds the guest up.
outer=$(counted $hog)
scx_temponet replay --record 4 --json /tmp/recording.json >/tmp/said 2>/tmp/progress &
recorder=$!
wait_for 30 grep -q 'recording for 4.0 s' /tmp/progress || fail "no recording began"
inner=$(counted $hog)
sleep 2
inner=$(minus "$(counted $hog)" "$inner" -0.02)
[[ -e /tmp/said && ! -s /tmp/said ]] || fail "the recording ended before its time"
wait $recorder || fail "recording failed"
outer=$(minus "$(counted $hog)" "$outer" 0.02)
assert_match "$(cat /tmp/said)" 'under temponet' "the scheduler in the recording"
seconds=$(grep -o '"horizon_ms":[0-9.]*' /tmp/said | awk -F: '{ print $2 / 1000 }')
replayed /tmp/recording.json
assert_ge "$(used bash-$hog)" "$inner" "seconds on a CPU of the hog, where the kernel counted $inner in less time"
assert_le "$(used bash-$hog)" "$outer" "seconds on a CPU of the hog, where the kernel counted $outer in more time"
stop_scheduler

# Ctrl-C keeps what there is, and the file says so.
scx_temponet replay --record 600 /tmp/early.json >/tmp/said 2>&1 &
recorder=$!
wait_for 30 grep -q "recording for" /tmp/said || fail "no recording began"
sleep 1
kill -INT $recorder
status=0
wait $recorder || status=$?
assert_eq "$status" 0 "status after Ctrl-C: $(cat /tmp/said)"
assert_match "$(grep -m 1 '"name"' /tmp/early.json)" 'ended early' "the file"
assert_match "$(grep -m 1 '"name"' /tmp/early.json)" 'kernel.s own scheduler' "the file"
replayed /tmp/early.json
scx_temponet sim --workload /tmp/early.json --policy edf >/dev/null || fail "sim does not take the recording"

status=0
scx_temponet replay --record 1 /nowhere/x.json 2>/dev/null || status=$?
assert_eq "$status" 2 "status with no folder to write to"
status=0
setpriv --reuid=65534 --regid=65534 --clear-groups scx_temponet replay --record 1 /tmp/nobody.json 2>/tmp/said || status=$?
assert_eq "$status" 2 "status without privileges"
assert_match "$(tail -n 1 /tmp/said)" 'root' "what is said then"
[[ ! -e /tmp/nobody.json && ! -e /tmp/nobody.partial ]] || fail "a file was left behind"
