#!/bin/bash
# SIGSTOP and SIGCONT storms on hogs and sleepers, and ptrace on top.
. "$(dirname "$0")/../lib.sh"
begin
stress-ng --quiet --ptrace 4 --kill 2 --sigq 2 &
tracers=$!
spin $((CPUS * 4))
sleepers=()
for ((i = 0; i < 8; i++)); do sleep 1000 & sleepers+=($!); done
until=$((SECONDS + LOAD_S))
while ((SECONDS < until)); do
    kill -STOP "${spinning[@]}" "${sleepers[@]}"
    kill -CONT "${spinning[@]}" "${sleepers[@]}"
done
# Who was stopped a thousand times goes on.
declare -A had
for pid in "${spinning[@]}"; do had[$pid]=$(cpu_ticks "$pid"); done
sleep 5
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" $((had[$pid] + 1)) "CPU ticks of hog $pid after the storm"; done
stop_spinning
dismiss $tracers "${sleepers[@]}"
finish
