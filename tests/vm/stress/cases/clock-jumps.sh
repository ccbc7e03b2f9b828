#!/bin/bash
# The wall clock jumps forth and back by an hour, again and again.
. "$(dirname "$0")/../lib.sh"
begin
spin $((CPUS * 2))
# SECONDS jumps too: count sleeps, which do not.
for ((i = 0; i < LOAD_S * 5; i++)); do
    date -s "@$(($(date +%s) + (i % 2 ? -3600 : 3600)))" >/dev/null
    sleep 0.2
done
stop_spinning
finish
