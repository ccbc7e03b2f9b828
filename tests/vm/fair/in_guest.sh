#!/bin/bash
# Does the runs of /fair/plan in the guest. Each leaves its record in /out, or the reason why
# there is none. Runs that follow each other under the same command line share one load of
# the scheduler: to load ours takes an emulated CPU half a minute.
#
#   in_guest.sh SECONDS
set -euo pipefail
# shellcheck source=/dev/null
. /fair/measure.sh

seconds=$1

# Once in ten seconds khugepaged would hold the memory map of somebody who is measured.
HUGE_PAGES=/sys/kernel/mm/transparent_hugepage/enabled
[[ ! -e $HUGE_PAGES ]] || echo never >$HUGE_PAGES
if grep -qE '^(rhythm|small-declarations) ' /fair/plan; then calibrate 2>/dev/null || fail "rt-app did not calibrate"; fi

# load [WORD]...: the scheduler of that command line; none: the kernel's own.
load() { if (($#)); then SCHEDULER=$1 start_scheduler "${@:2}"; fi; }

# one_run FILE CASE VARIANT COLUMN: under a scheduler that is loaded, and must be so at the end.
one_run() {
    local state
    state=$(scx_state)
    dmesg -c >/dev/null
    fair play "$2" "$3" "$4" --seconds "$seconds" >"$1.json" || fail "fair play ended with status $?"
    scx_is "$state" || fail "the scheduler was thrown out"
    check_dmesg
}

# session [WORD]...: all runs of /tmp/session under that command line.
session() {
    local file case variant column rest
    load "$@"
    while read -r case variant column rest; do
        echo "$case $variant $column" >&3
        file=/out/$case.$variant.$column
        (trap - EXIT && one_run "$file" "$case" "$variant" "$column") </dev/null >/tmp/run.log 2>&1 || cp /tmp/run.log "$file.failed"
        if (($#)) && ! scx_is enabled; then
            tail -n 40 "$SCHEDULER_LOG" >>"$file.failed"
            load "$@"
        fi
    done </tmp/session
    if (($#)); then stop_scheduler; fi
}

# The command lines of the plan, in the order they first come in.
cut -d' ' -f4- /fair/plan | awk '!seen[$0]++' >/tmp/launches
number=0
while read -r launch; do
    awk -v launch="$launch" '{ rest = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ ?/, "", rest) } rest == launch' /fair/plan >/tmp/session
    read -ra words <<<"$launch"
    (trap end_of_test EXIT && session "${words[@]}") 3>&1 >/tmp/session.log 2>&1 </dev/null || cat /tmp/session.log
    cp "$SCHEDULER_LOG" "/out/scheduler.$((++number)).log" 2>/dev/null || true
    while read -r case variant column _; do
        file=/out/$case.$variant.$column
        [[ -s $file.json || -e $file.failed ]] || cp /tmp/session.log "$file.failed"
    done </tmp/session
done </tmp/launches
