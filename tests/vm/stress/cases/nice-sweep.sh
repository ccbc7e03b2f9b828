#!/bin/bash
# Hogs whose nice level goes up and down all the time.
. "$(dirname "$0")/../lib.sh"
begin
spin $((CPUS * 6))
until=$((SECONDS + LOAD_S))
while ((SECONDS < until)); do
    for pid in "${spinning[@]}"; do renice -n $((RANDOM % 40 - 20)) -p "$pid" >/dev/null 2>&1; done
done
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
stop_spinning
finish
