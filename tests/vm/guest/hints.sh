#!/bin/bash
# Declared deadlines: set, shown and cleared by root and by an ordinary user,
# kept by the scheduler, refused where they would hurt others.
#: again icount
. "$(dirname "$0")/lib.sh"

# An array and not a function, so that $! is the command and not a shell of root.
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
# refused STATUS PATTERN COMMAND...: one sentence, that status, no panic.
refused() {
    local want=$1 pattern=$2 status=0 said
    shift 2
    said=$("$@" 2>&1) || status=$?
    assert_eq "$status" "$want" "status of: $*"
    assert_match "$said" "$pattern" "what was said by: $*"
}

refused 2 'not running|is scx_temponet' scx_temponet hint --runtime 1ms --period 10ms --pid $$
start_scheduler --stats 1 --hint-util-user 0.3

scx_temponet hint --runtime 10ms --deadline 40ms --period 40ms -- sleep 60 &
sleeper=$!
wait_for 10 grep -q '^sleep$' /proc/$sleeper/comm || fail "the command did not start"
assert_match "$(scx_temponet hint --show --pid $sleeper)" '10 ?ms.*40 ?ms' "hint of the command"
scx_temponet hint --clear --pid $sleeper
assert_match "$(scx_temponet hint --show --pid $sleeper)" 'no|nothing' "hint after it was cleared"

refused 2 'runtime' scx_temponet hint --runtime 50ms --deadline 40ms --period 40ms --pid $sleeper
refused 2 'period' scx_temponet hint --runtime 1ms --period 0ms --pid $sleeper
refused 2 'no task' scx_temponet hint --runtime 1ms --period 10ms --pid 4000000
refused 2 '.' scx_temponet hint --runtime 1 --period 10ms --pid $sleeper

# An ordinary user: its own tasks, within its share, and nobody else's.
"${as_nobody[@]}" sleep 60 &
own=$!
sleep 0.2
"${as_nobody[@]}" scx_temponet hint --runtime 5ms --deadline 20ms --period 20ms --pid $own
refused 1 'user|belong|own' "${as_nobody[@]}" scx_temponet hint --runtime 1ms --period 10ms --pid $sleeper
refused 1 'declared|would' "${as_nobody[@]}" scx_temponet hint --runtime 19900us --period 20ms --pid $own

# A job every 20 ms of well below its runtime, on an otherwise idle machine.
"${as_nobody[@]}" bash -c 'for ((i = 0; i < 100; i++)); do sleep 0.02; done' &
loop=$!
"${as_nobody[@]}" scx_temponet hint --runtime 5ms --deadline 20ms --period 20ms --pid $loop
wait $loop
kill $sleeper $own
sleep 2
assert_ge "$(figure .classes.declared.met)" 1 "declared jobs that met their deadline"
stop_scheduler
for socket in hint.sock hint.sock.root; do
    [[ ! -e /run/scx_temponet/$socket ]] || fail "$socket was left behind"
done
[[ ! -e /sys/fs/bpf/scx_temponet/task_hints ]] || fail "the hint map was left behind"
