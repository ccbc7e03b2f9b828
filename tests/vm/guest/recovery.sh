#!/bin/bash
# Two declared tasks that need 0.8 of a CPU, a hog beside them, and a real-time task
# that takes the CPU away for a second: that passes, and so must the misses.
# In a guest that the host slows down by an eighth, they would need more than they declared.
#: mode icount
. "$(dirname "$0")/lib.sh"

cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "arm*"
runtime = "45ms"
period = "100ms"
TOML
cat >/tmp/arms.json <<'JSON'
{ "global": { "duration": 90, "calibration": "CPU0", "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "arm": { "instance": 2, "loop": -1, "cpus": [0], "run": 40000,
    "timer": { "ref": "unique", "period": 100000, "mode": "absolute" } } } }
JSON
spin='while :; do :; done'

start_scheduler --stats 1 --rules /tmp/rules.toml
rt-app /tmp/arms.json >/tmp/rt-app.txt 2>&1 &
arms=$!
both_run() { (($(figure .classes.declared.met) >= 10)); }
wait_for 60 both_run || fail "the declared tasks did not start"
nice -n 19 taskset -c 0 bash -c "$spin" &
hog=$!
sleep 3
before=$(figure .classes.declared.missed)
timeout 1 chrt -f 50 taskset -c 0 bash -c "$spin" || true
sleep 12
disturbed=$(figure .classes.declared.missed)
met=$(figure .classes.declared.met)
sleep 6
missed=$(($(figure .classes.declared.missed) - disturbed)) met=$(($(figure .classes.declared.met) - met))
printf 'missed %d before, %d around the disturbance, %d of %d after it\n' \
    "$before" $((disturbed - before)) "$missed" $((met + missed))
assert_ge $((disturbed - before)) 3 "jobs that the disturbance made late"
assert_ge "$met" 60 "jobs on time in 6 s"
assert_le "$missed" $((met / 10)) "jobs late in 6 s, long after the disturbance"
assert_ge "$(awk '{ print $14 + $15 }' "/proc/$hog/stat")" 10 "CPU ticks of the hog"
kill "$arms" "$hog"
wait "$arms" "$hog" || true
stop_scheduler
