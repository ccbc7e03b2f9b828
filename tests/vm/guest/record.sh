#!/bin/bash
# replay --record: what ran, with the utilisation that the kernel counted, under any
# scheduler; written whole or not at all.
. "$(dirname "$0")/lib.sh"

# used NAME: CPUs that a task of the recording used in the simulator.
used() {
    awk -v name="\"name\": \"$1\"" '/"cpus_used"/ { used = $2 } index($0, name) { print used + 0; exit }' /tmp/replayed.json
}
replayed() { scx_temponet replay "$1" --policy edf --json >/tmp/replayed.json 2>/dev/null || fail "$1 cannot be replayed"; }
# Seconds on a CPU by the kernel's own count, in ticks of 10 ms.
counted() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print ($12 + $13) / 100 }'; }
now() { cut -d' ' -f1 /proc/uptime; }

start_scheduler
bash -c 'while :; do :; done' &
hog=$!
bash -c 'while :; do sleep 0.05; for ((i = 0; i < 300; i++)); do :; done; done' &
sleep 1
before=$(counted $hog) from=$(now)
scx_temponet replay --record 4 /tmp/recording.json >/tmp/said || fail "recording failed"
after=$(counted $hog) to=$(now)
assert_match "$(cat /tmp/said)" 'under temponet' "the scheduler in the recording"
replayed /tmp/recording.json
kernel=$(awk -v a="$before" -v b="$after" -v from="$from" -v to="$to" 'BEGIN { print (b - a) / (to - from) }')
ratio=$(awk -v a="$(used bash-$hog)" -v b="$kernel" 'BEGIN { print a / b }')
# The two intervals are not quite the same.
assert_ge "$ratio" 0.93 "the hog's utilisation, replayed over counted"
assert_le "$ratio" 1.07 "the hog's utilisation, replayed over counted"
stop_scheduler

# Ctrl-C keeps what there is, and the file says so.
scx_temponet replay --record 600 /tmp/early.json >/tmp/said 2>&1 &
recorder=$!
sleep 2
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
