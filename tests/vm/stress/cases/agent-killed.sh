#!/bin/bash
# The agent is killed under load, and loaded again: the kernel takes over each time.
. "$(dirname "$0")/../lib.sh"
expect_rivals
spin $((CPUS * 2))
start_rivals
# Not a sleeping thread is killed, but one at work.
has_decided() { grep -qE '\| [1-9][0-9]* decisions' "$SCHEDULER_LOG"; }
for signal in KILL SEGV ABRT TERM; do
    start_scheduler --policy "$POLICY" --stats 0.2 "${OPTIONS[@]}"
    [[ $POLICY != temponet ]] || wait_for 20 has_decided || fail "the agent decided nothing before SIG$signal"
    kill -$signal "$scheduler_pid"
    # The language's runtime looks at the first of these: a fault would come again at once.
    if [[ $signal == SEGV ]]; then
        sleep 1
        kill -SEGV "$scheduler_pid"
    fi
    wait_for 60 scx_is disabled || fail "still $(scx_state) after SIG$signal"
    wait_for 60 scheduler_is_gone || fail "the agent outlived SIG$signal"
    wait "$scheduler_pid" || true
    scheduler_pid=''
done
begin
sleep 2
stop_spinning
finish
