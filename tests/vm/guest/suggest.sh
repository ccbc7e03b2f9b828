#!/bin/bash
# hint --suggest: the period and the runtime of a task that was watched, with no scheduler of
# ours loaded and with one; and no proposal for a hog.
#: mode icount
. "$(dirname "$0")/lib.sh"

cat >/tmp/beat.json <<'JSON'
{ "global": { "duration": 600, "calibration": 100, "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "beat": { "loop": -1, "runtime": 5000,
    "timer": { "ref": "unique", "period": 50000, "mode": "absolute" } } } }
JSON
rt-app /tmp/beat.json >/tmp/rt-app.txt 2>&1 &
rt_app=$!
bash -c 'while :; do :; done' &
hog=$!
thread() { grep -l '^beat' /proc/$rt_app/task/*/comm 2>/dev/null | head -n 1 | cut -d/ -f5; }
has_thread() { [[ -n $(thread) ]]; }
wait_for 60 has_thread || fail "rt-app has no thread called beat: $(tail -n 1 /tmp/rt-app.txt)"
beat=$(thread)

# suggested UNDER: what it proposes lies near what rt-app was told.
suggested() {
    local command period runtime
    scx_temponet hint --suggest "$beat" --watch 5s >/tmp/said 2>/tmp/progress || fail "under $1: $(cat /tmp/said /tmp/progress)"
    cat /tmp/said
    command=$(grep -m 1 '^  scx_temponet hint' /tmp/said) || fail "under $1: no command in $(cat /tmp/said)"
    assert_match "$command" "--pid $beat\$" "the task in the command"
    period=$(grep -o '"period_ns":[0-9]*' <(scx_temponet hint --suggest "$beat" --watch 5s --json 2>/dev/null) | cut -d: -f2)
    assert_ge "$period" 49000000 "under $1: the period"
    assert_le "$period" 51000000 "under $1: the period"
    runtime=$(grep -o -- '--runtime [0-9.]*ms' /tmp/said | grep -o '[0-9.]*')
    assert_ge "$runtime" 5 "under $1: the runtime in ms"
    assert_le "$runtime" 15 "under $1: the runtime in ms"
}

suggested "the kernel's own scheduler"
status=0
scx_temponet hint --suggest $hog --watch 2s >/tmp/said 2>&1 || status=$?
assert_eq "$status" 1 "status for a hog: $(cat /tmp/said)"
assert_match "$(cat /tmp/said)" 'never slept|no steady period|a rhythm needs' "what is said of a hog"

start_scheduler
suggested temponet
# The very command is one that the daemon takes.
command=$(grep -m 1 '^  scx_temponet hint' /tmp/said)
$command || fail "refused: $command"
assert_match "$(scx_temponet hint --show --pid "$beat")" 'beat' "what was declared"
stop_scheduler

status=0
setpriv --reuid=65534 --regid=65534 --clear-groups scx_temponet hint --suggest "$beat" --watch 1s 2>/tmp/said || status=$?
assert_eq "$status" 2 "status without privileges"
assert_match "$(tail -n 1 /tmp/said)" 'root' "what is said then"
