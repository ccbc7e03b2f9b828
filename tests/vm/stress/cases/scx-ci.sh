#!/bin/bash
# The load that sched_ext's own CI runs, for as long as it does.
. "$(dirname "$0")/../lib.sh"
begin
run_to_end stress-ng --quiet -t 31 --aggressive -M -c "$CPUS" -f "$CPUS" --affinity 1 --affinity-delay 1 --affinity-pin
finish
