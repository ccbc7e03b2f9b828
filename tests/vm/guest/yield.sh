#!/bin/bash
# sched_yield() ends a declared task's job, as it does under SCHED_DEADLINE: what the task runs on
# until its next period begins, it runs below declared jobs. This one does 1 ms of work, yields,
# and does 5 ms more, 25 times a second.
#: mode icount
. "$(dirname "$0")/lib.sh"

cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "yld*"
runtime = "12ms"
period = "40ms"
TOML
cat >/tmp/yield.json <<'JSON'
{ "global": { "duration": 8, "calibration": 100, "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "yld": { "loop": -1, "cpus": [0], "runtime0": 1000, "yield": "", "runtime1": 5000,
    "timer": { "ref": "unique", "period": 40000, "mode": "absolute" } } } }
JSON
start_scheduler --stats 1 --policy edf --rules /tmp/rules.toml
# Something waits for CPU 0 when it yields.
taskset -c 0 bash -c 'while :; do :; done' &
hog=$!
rt-app /tmp/yield.json >/tmp/rt-app.txt 2>&1 || fail "rt-app: $(tail -n 1 /tmp/rt-app.txt)"
kill $hog
wait $hog 2>/dev/null || true
# Jobs, and ms that they ran as declared jobs.
read -r jobs ran < <(figure '.classes.declared | "\(.met + .missed) \(.run_ms)"')
stop_scheduler
printf '%s jobs ran for %s ms as declared ones\n' "$jobs" "$ran"
assert_ge "$jobs" 100 "jobs in 8 s of a task with a period of 40 ms"
assert_le "$ran" "$(awk -v n="$jobs" 'BEGIN { print 3 * n }')" "ms of $jobs jobs that yield after 1 ms each and then do 5 ms more"
