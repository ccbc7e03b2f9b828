#!/bin/bash
# Storms of wake-ups: hackbench over pipes and sockets, processes and threads; futexes, switches.
# Without stress-ng's --mutex: its threads are SCHED_FIFO and own all CPUs (case fifo-hog).
. "$(dirname "$0")/../lib.sh"
begin
for kind in '-p' '-p -T' '' '-T'; do
    # shellcheck disable=SC2086
    run_to_end hackbench $kind -g 4 -f 10 -l 50 >/dev/null
done
run_to_end stress-ng --quiet -t "$LOAD_S" --futex 4 --switch 4 --pipe 4 --sem 2
finish
