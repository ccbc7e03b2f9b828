#!/bin/bash
# Tasks whose affinity changes all the time, while they wait and while they run.
. "$(dirname "$0")/../lib.sh"
begin
# Each change may take a stopper thread, which stands above every scheduler: a pause of
# 0.1 ms between them leaves time to schedule in.
stress-ng --quiet --affinity "$CPUS" --affinity-rand --affinity-delay 100000 &
storm=$!
spin $((CPUS * 4))
until=$((SECONDS + LOAD_S))
while ((SECONDS < until)); do
    for pid in "${spinning[@]}"; do taskset -p -c $((RANDOM % CPUS)) "$pid" >/dev/null; done
    for pid in "${spinning[@]}"; do taskset -p -c "0-$LAST_CPU" "$pid" >/dev/null; done
done
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
stop_spinning
dismiss $storm
finish
