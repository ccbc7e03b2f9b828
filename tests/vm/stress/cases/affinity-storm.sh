#!/bin/bash
# Tasks whose affinity changes all the time, while they wait and while they run.
. "$(dirname "$0")/../lib.sh"
begin
stress-ng --quiet --affinity $((CPUS * 4)) --affinity-rand --affinity-delay 0 &
storm=$!
spin $((CPUS * 4))
until=$((SECONDS + LOAD_S))
while ((SECONDS < until)); do
    for pid in "${spinning[@]}"; do taskset -p -c $((RANDOM % CPUS)) "$pid" >/dev/null; done
    for pid in "${spinning[@]}"; do taskset -p -c "0-$LAST_CPU" "$pid" >/dev/null; done
done
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
stop_spinning
kill $storm
reap $storm
finish
