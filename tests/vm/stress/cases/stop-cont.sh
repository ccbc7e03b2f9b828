#!/bin/bash
# SIGSTOP and SIGCONT storms on hogs and sleepers, and ptrace on top.
. "$(dirname "$0")/../lib.sh"
begin
stress-ng --quiet --ptrace 4 --kill 2 --sigq 2 &
tracers=$!
spin $((CPUS * 4))
for ((i = 0; i < 8; i++)); do sleep 1000 & spinning+=($!); done
until=$((SECONDS + LOAD_S))
while ((SECONDS < until)); do
    kill -STOP "${spinning[@]}"
    kill -CONT "${spinning[@]}"
done
stop_spinning
kill $tracers
reap $tracers
finish
