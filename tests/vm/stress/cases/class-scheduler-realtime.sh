#!/bin/bash
# All stressors of stress-ng's class scheduler at once: some own the CPUs with a real-time policy.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
# As in class-scheduler.
left_out=()
keeps_some_for_sched_ext || left_out=(-x mutex)
# Four fifths of all CPU time were seen to go to real-time tasks. Nobody is promised anything
# of that; but the watchdog, after 20 s, makes no difference.
COMPLIANCE_FLOOR=0
WAIT_BOUND_MS=16000
begin
run_class_at_once scheduler "${left_out[@]}"
finish
