#!/bin/bash
# Plays attacks in the guest, one after the other, under one load of the scheduler where it
# survives. Each leaves its record in /out, or the reason why there is none.
#
#   in_guest.sh SECONDS ATTACK...
set -euo pipefail
# shellcheck source=/dev/null
. /tests/lib.sh
# shellcheck source=/dev/null
. /tests/lib_attacks.sh

seconds=$1
shift
prepare_attacks
start_attacked
for attack; do
    status=0
    attacks play "$attack" --seconds "$seconds" --daemon "$scheduler_pid" --json "/out/$attack.json" >"/out/$attack.log" 2>&1 </dev/null || status=$?
    dmesg -c >/tmp/dmesg
    if grep -E 'runnable task stall|WARNING:|BUG:|rcu.*stall|soft lockup|blocked for more than|runtime error' /tmp/dmesg >>"/out/$attack.log"; then
        rm -f "/out/$attack.json"
    fi
    cat "/out/$attack.log"
    if ((status > 1)) || ! scx_is enabled; then
        tail -n 20 "$SCHEDULER_LOG" >>"/out/$attack.log"
        kill -KILL "$scheduler_pid" 2>/dev/null || true
        wait "$scheduler_pid" || true
        wait_for 30 scx_is disabled
        start_attacked
    fi
done
stop_scheduler
