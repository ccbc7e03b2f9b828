#!/bin/bash
# Stress-ng's class scheduler, one stressor after the other, and all at once but real-time hogs.
#: timeout 900
#: mem 2G
. "$(dirname "$0")/../lib.sh"
# Threads of `mutex` are SCHED_FIFO, spin on every CPU, and wait for one that is not to
# end them: where Linux keeps nothing for sched_ext, the watchdog ejects us after its time.
left_out=()
keeps_some_for_sched_ext || left_out=(-x mutex)
begin
run_class scheduler "${left_out[@]}"
run_class_at_once scheduler -x mutex,hrtimers,softlockup
finish
