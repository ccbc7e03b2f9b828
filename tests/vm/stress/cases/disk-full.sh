#!/bin/bash
# The disk is full that its figures and its log are written to.
. "$(dirname "$0")/../lib.sh"
# into REDIRECTION: how to start it, in /tmp/full.
into() {
    printf '#!/bin/bash\nexec scx_temponet "$@" %s\n' "$1" >/tmp/full
    chmod +x /tmp/full
}

# It stays, or leaves with a sentence and the kernel's own scheduler back.
stays_or_leaves() {
    local status=0
    SCHEDULER=/tmp/full start_scheduler --policy "$POLICY" --stats 0.2
    sleep 5
    if scheduler_is_gone; then
        wait "$scheduler_pid" || status=$?
        scheduler_pid=''
        wait_for 10 scx_is disabled || fail "$1: it ended, and sched_ext is still $(scx_state)"
        [[ -s $SCHEDULER_LOG ]] || fail "$1: it ended with status $status and not a word"
    else
        assert_eq "$(scx_state)" enabled "$1: state"
        scx_temponet hint --show --pid $$ >/dev/null || fail "$1: it no longer answers"
        stop_scheduler
        assert_eq "$scheduler_status" 0 "$1: exit status"
    fi
    ! grep panicked "$SCHEDULER_LOG" || fail "$1: a panic"
    say "$1: $(tail -n 1 "$SCHEDULER_LOG")"
}

# All that it promises, with nowhere to write its figures to.
into '>/dev/full'
OPTIONS=(--stats 1)
SCHEDULER=/tmp/full begin
sleep 5
finish
grep -q 'no more figures' "$SCHEDULER_LOG" || fail "it does not say that it cannot write its figures"

spin "$CPUS"
stays_or_leaves "no room for figures"
into '2>/dev/full'
stays_or_leaves "no room for the log"
into '>/dev/full 2>/dev/full'
stays_or_leaves "no room for either"
stop_spinning
