#!/bin/bash
# Tasks that exit, and tasks that may not migrate just now, wait in our queues like all
# others. Where the kernel put them onto their CPU without asking us, a declared job that
# waited there pushed them aside again at once, and nothing else happened on that CPU.
#: again icount
. "$(dirname "$0")/lib.sh"

start_scheduler
mkfifo /tmp/never
taskset -c 1 bash -c 'exec 3<>/tmp/never; while :; do read -r -t 0.01 -u 3; done' &
declared=$!
scx_temponet hint --runtime 1ms --deadline 10ms --period 10ms --pid $declared
taskset -c 1 timeout -k 1 120 stress-ng --quiet --fork 2 --fork-ops 200 --vm 1 --vm-bytes 32M --vm-ops 2 ||
    fail "tasks that exit did not get there: status $?"
assert_eq "$(scx_state)" enabled "state"
# Since Linux 6.15 the kernel counts whom it did not ask us about.
if [[ -r $SCX/root/events ]]; then
    for event in SCX_EV_ENQ_SKIP_EXITING SCX_EV_ENQ_SKIP_MIGRATION_DISABLED; do
        assert_eq "$(awk -v name=$event '$1 == name { print $2 }' $SCX/root/events)" 0 "$event"
    done
fi
kill $declared
wait $declared || true
stop_scheduler
rm /tmp/never
