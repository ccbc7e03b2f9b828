#!/bin/bash
# Loaded and unloaded a hundred times while the machine works.
#: timeout 3600
. "$(dirname "$0")/../lib.sh"
# At their nice level a load took up to a minute in an emulator: the kernel's own scheduler gives
# them most of the time.
spin $((CPUS * 2)) nice -n 19
nice -n 19 stress-ng --quiet --switch 2 --timer 1 --fork 1 &
load=$!
for ((round = 1; round <= 100; round++)); do
    start_scheduler --policy "$POLICY"
    stop_scheduler
    assert_eq "$scheduler_status" 0 "exit status in round $round"
    ((round % 10)) || report "$round loads in $SECONDS s"
done
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
begin
dismiss $load
stop_spinning
finish
