#!/bin/bash
# monitor on a loaded scheduler: what it says of load, deadlines and the agent is so. And the
# scheduler's log has no escape sequences in a file.
. "$(dirname "$0")/lib.sh"

# value NAME FILE: a number that occurs once, or the first of them.
value() { grep -o "\"$1\":[-0-9.e]*" "$2" | head -n 1 | cut -d: -f2; }

start_scheduler
grep -q '^\[INFO\] ' "$SCHEDULER_LOG" || fail "no log line: $(head -n 1 "$SCHEDULER_LOG")"
! grep -q $'\e' "$SCHEDULER_LOG" || fail "escape sequences in the log: $(head -n 1 "$SCHEDULER_LOG" | cat -v)"

scx_temponet monitor --once >/tmp/screen || fail "monitor --once ended with status $?"
assert_match "$(head -n 1 /tmp/screen)" 'temponet .*agent idle: (no declared task ran|nothing competes)' "the state of a quiet machine"
assert_match "$(sed -n 2p /tmp/screen)" 'loaded for' "how long it has been loaded"

# One hog per CPU: all are busy, and none more than all of the time.
for ((i = 0; i < $(nproc); i++)); do bash -c 'while :; do :; done' & done
sleep 1
scx_temponet monitor --once --interval 2s --json >/tmp/figures || fail "monitor --json ended with status $?"
assert_eq "$(wc -l </tmp/figures)" 1 "lines of --once --json"
assert_ge "$(value interval_s /tmp/figures)" 1.9 "the interval"
grep -o '"busy":[0-9.e-]*' /tmp/figures | cut -d: -f2 >/tmp/busy
assert_eq "$(wc -l </tmp/busy)" "$(nproc)" "CPUs with a load"
while read -r busy; do
    assert_ge "$busy" 0.8 "load of a CPU with a hog"
    assert_le "$busy" 1 "load of a CPU"
done </tmp/busy
jobs -p | grep -vx "$scheduler_pid" | xargs -r kill -KILL

# Declared work: rates are of the interval, totals since load.
write_rivals
stop_scheduler
start_scheduler --rules /tmp/rules.toml
rt-app /tmp/rivals.json >/tmp/rt-app.txt 2>&1 &
sleep 6
COLUMNS=200 scx_temponet monitor --once --interval 2s >/tmp/screen || fail "monitor --once ended with status $?"
cat /tmp/screen
declared=$(grep '^declared' /tmp/screen) || fail "no declared jobs in $(cat /tmp/screen)"
read -r _ met missed _ <<<"$declared"
assert_ge "$met" 1 "deadlines met in a second"
# Four tasks of 12 ms every 40 ms, on one CPU.
assert_le "$(awk -v a="$met" -v b="$missed" 'BEGIN { print a + b }')" 110 "jobs in a second"
assert_match "$(head -n 1 /tmp/screen)" 'the agent decides|overload: the agent gave up' "who decides in overload"
assert_match "$(cat /tmp/screen)" 'ctl' "the tasks in trouble"
stop_scheduler
