#!/bin/bash
# Loaded and unloaded a hundred times while the machine works.
#: timeout 900
. "$(dirname "$0")/../lib.sh"
spin $((CPUS * 2))
stress-ng --quiet --switch 2 --timer 1 --fork 1 &
load=$!
for ((round = 1; round <= 100; round++)); do
    start_scheduler --policy "$POLICY"
    stop_scheduler
    assert_eq "$scheduler_status" 0 "exit status in round $round"
done
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
begin
dismiss $load
stop_spinning
finish
