#!/bin/bash
# Runs in a guest, for scripts/fleet.sh: the scheduler with a workload that fits or does not, and
# its figures on standard output every few seconds.
set -euo pipefail

case $1 in
    fits) runtime_ms=9 ;;
    overload) runtime_ms=17 ;;
esac
cat >/tmp/rules.toml <<TOML
[[rule]]
comm = "loop*"
runtime = "${runtime_ms}ms"
period = "40ms"
TOML
cat >/tmp/loops.json <<JSON
{ "global": { "duration": 100000, "calibration": "CPU0", "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "loop": { "instance": 3, "loop": -1, "cpus": [0], "run": $((runtime_ms * 950)),
    "timer": { "ref": "unique", "period": 40000, "mode": "absolute" } } } }
JSON
scx_temponet --rules /tmp/rules.toml --metrics /tmp/figures.prom >/dev/null 2>/tmp/scheduler.log &
until grep -q ^scx_temponet_ /tmp/figures.prom 2>/dev/null; do
    [[ -d /proc/$! ]] || { cat /tmp/scheduler.log >&2; exit 1; }
    sleep 1
done
rt-app /tmp/loops.json >/dev/null 2>&1 &
while sleep 5; do
    echo '=== figures'
    cat /tmp/figures.prom
    echo '=== end'
done
