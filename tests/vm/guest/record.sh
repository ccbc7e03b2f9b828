#!/bin/bash
# replay --record: what ran, with the CPU time that the kernel counted, under any
# scheduler; written whole or not at all.
. "$(dirname "$0")/lib.sh"

CPUS=$(nproc)
replayed() { scx_temponet replay "$1" --policy edf --json >/tmp/replayed.json 2>/dev/null || fail "$1 cannot be replayed"; }
# measured NAME SECONDS: seconds on a CPU of a task of the recording, or of all.
measured() {
    tr '{' '\n' </tmp/said | awk -v name="\"name\":\"$1\"" -v seconds="$2" -F '[:,]' '
        /cpus_used/ && (name ~ /"all"/ || index($0, name)) { used += $2 }
        END { print used * seconds }'
}
# Seconds on a CPU by the kernel's own count.
counted() { awk '{ printf "%.6f", $1 / 1e9 }' "/proc/$1/schedstat"; }
# between A B PERCENT: B - A, so much more or less, and the ticks that the counts are behind.
between() { awk -v a="$1" -v b="$2" -v percent="$3" 'BEGIN { print (b - a) * (1 + percent / 100) + (percent < 0 ? -0.02 : 0.02) }'; }

# A hog, one that sleeps in between, and many that come and go: every one of those is
# new to the recorder.
bash -c 'while :; do :; done' &
hog=$!
bash -c 'while :; do sleep 0.05; for ((i = 0; i < 3000; i++)); do :; done; done' &
part=$!
sleep 1

# recorded_under WHOM: the recording lies between two that the kernel counted, whatever
# holds the guest up.
recorded_under() {
    local recorder seconds task least most pids=("$hog" "$part")
    local -A first begun ending last
    for task in "${pids[@]}"; do first[$task]=$(counted "$task"); done
    scx_temponet replay --record 4 --json /tmp/recording.json >/tmp/said 2>/tmp/progress &
    recorder=$!
    wait_for 180 grep -q "recording for 4.0 s" /tmp/progress || fail "under $1: no recording began: $(tail -n 1 /tmp/progress)"
    for task in "${pids[@]}"; do begun[$task]=$(counted "$task"); done
    sleep 2
    for task in "${pids[@]}"; do ending[$task]=$(counted "$task"); done
    [[ -e /tmp/said && ! -s /tmp/said ]] || fail "the recording ended before its time"
    wait $recorder || fail "recording failed: $(tail -n 1 /tmp/progress)"
    for task in "${pids[@]}"; do last[$task]=$(counted "$task"); done
    assert_match "$(cat /tmp/said)" "under $1" "the scheduler in the recording"
    seconds=$(grep -o '"horizon_ms":[0-9.]*' /tmp/said | awk -F: '{ print $2 / 1000 }')
    assert_le "$(measured all "$seconds")" "$(awk -v s="$seconds" -v n="$CPUS" 'BEGIN { print s * n * 1.001 + 0.001 }')" "under $1: seconds on $CPUS CPUs in $seconds s"
    for task in "${pids[@]}"; do
        least=$(between "${begun[$task]}" "${ending[$task]}" -2)
        most=$(between "${first[$task]}" "${last[$task]}" 2)
        assert_ge "$(measured "bash-$task" "$seconds")" "$least" "under $1: seconds on a CPU of $task, of $seconds"
        assert_le "$(measured "bash-$task" "$seconds")" "$most" "under $1: seconds on a CPU of $task, of $seconds"
    done
    replayed /tmp/recording.json
}

recorded_under "the kernel.s own scheduler"
start_scheduler
recorded_under temponet
stop_scheduler

# Ctrl-C keeps what there is, and the file says so.
scx_temponet replay --record 600 /tmp/early.json >/tmp/said 2>&1 &
recorder=$!
wait_for 180 grep -q "recording for" /tmp/said || fail "no recording began"
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
[[ ! -e /tmp/nobody.json && -z $(compgen -G "/tmp/.scx_temponet-*") ]] || fail "a file was left behind"
