#!/bin/bash
# replay --live: the real rt-app under one scheduler after the other, each loaded for
# the whole of its run, and everything as before in the end, however it ends.
. "$(dirname "$0")/lib.sh"

cat >/tmp/workload.json <<'JSON'
{ "global": { "duration": 1, "calibration": 20 },
  "tasks": {
    "control": { "policy": "SCHED_FIFO", "priority": 40, "loop": -1, "run": 500, "run": 500,
      "timer": { "ref": "unique", "period": 50000, "mode": "absolute" } },
    "camera": { "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 100000, "mode": "absolute" } } } }
JSON
throttling=$(cat /proc/sys/kernel/sched_rt_runtime_us)

as_before() {
    wait_for 30 scx_is disabled || fail "$1: sched_ext is still $(scx_state)"
    [[ -z $(pidof rt-app scx_temponet) ]] || fail "$1: still running: $(pidof rt-app scx_temponet)"
    assert_eq "$(cat /proc/sys/kernel/sched_rt_runtime_us)" "$throttling" "$1: real-time throttling"
    assert_eq "$(echo /tmp/scx_temponet-*)" '/tmp/scx_temponet-*' "$1: temporary files"
}

# live NAME SCHEDULERS SECONDS: in the background, as $live.
live() {
    scx_temponet replay /tmp/workload.json --live --calibration file --against "$2" --horizon "$3s" --cores 1 >"/tmp/$1.txt" 2>"/tmp/$1.err" &
    live=$!
}
ended() {
    status=0
    wait "$live" || status=$?
}

status=0
scx_temponet replay /tmp/workload.json --live --against eevdf,edf,temponet,deadline --json --perfetto /tmp/trace.json \
    >/tmp/report.json 2>/tmp/report.err || status=$?
assert_eq "$status" 0 "status of replay: $(tail -n 1 /tmp/report.err) $(grep '"failed": "' /tmp/report.json)"
as_before "after a whole run"
assert_eq "$(grep -c '"source": "live"' /tmp/report.json)" 4 "schedulers with figures"
grep -q '"loaded": "temponet' /tmp/report.json || fail "the report does not name the scheduler that was loaded"
grep -qF "\"kernel\": \"$(uname -r)\"" /tmp/report.json || fail "the report does not name the kernel"
# 20 jobs of control and 10 of camera, whoever schedules; all run on a CPU.
assert_eq "$(sed '/^  "verdict"/,$d' /tmp/report.json | grep -c '"jobs": 30,')" 4 "jobs released under every scheduler"
assert_eq "$(grep -c '"cpus_used": 0.0,' /tmp/report.json)" 0 "threads that were never seen on a CPU"
grep -q 'under edf (temponet' /tmp/trace.json || fail "the trace does not name the scheduler"
grep -qF "on Linux $(uname -r)" /tmp/trace.json || fail "the trace does not name the kernel"

live interrupted edf 60
wait_for 120 scx_is enabled || fail "edf was not loaded: $(tail -n 3 /tmp/interrupted.err)"
wait_for 60 pidof rt-app >/dev/null || fail "rt-app did not start"
kill -INT "$live"
ended
assert_eq "$status" 130 "status after Ctrl-C"
as_before "after Ctrl-C"

live terminated deadline 60
is_open() { [[ $(cat /proc/sys/kernel/sched_rt_runtime_us) == -1 ]]; }
wait_for 120 is_open || fail "admission was not switched off: $(tail -n 3 /tmp/terminated.err)"
kill -TERM "$live"
ended
assert_eq "$status" 130 "status after SIGTERM"
as_before "after SIGTERM"

live thrown edf 60
wait_for 120 scx_is enabled || fail "edf was not loaded: $(tail -n 3 /tmp/thrown.err)"
wait_for 60 pidof rt-app >/dev/null || fail "rt-app did not start"
sleep 4 # its threads have begun
# The scheduler is the child that was told a policy; this command is not meant.
kill -KILL "$(grep -la -- '--polic[y]' /proc/[0-9]*/cmdline 2>/dev/null | head -n 1 | cut -d/ -f3)"
ended
assert_eq "$status" 1 "status when the scheduler did not stay"
assert_match "$(cat /tmp/thrown.txt)" 'edf failed: .*(ended during the run|did not stay)' "the report"
as_before "after the scheduler was killed"

status=0
said=$(scx_temponet replay /tmp/workload.json --live --against scx_nobody 2>/dev/null) || status=$?
assert_eq "$status" 1 "status with a scheduler that is not installed"
assert_match "$said" 'not installed' "what was said of it"
start_scheduler
status=0
said=$(scx_temponet replay /tmp/workload.json --live 2>&1) || status=$?
assert_eq "$status" 2 "status with another scheduler loaded"
assert_match "$said" 'temponet.* is loaded: end it first' "what was said"
stop_scheduler
