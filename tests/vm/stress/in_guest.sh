#!/bin/bash
# Runs a case (cases/NAME) or the soak in the guest; its status is 0, 77 (does not apply here) or 1. The
# case's own words, the kernel's and the figures come back in /out.
status=0
timeout -k 10 "$2" bash "/stress/$1.sh" >/out/log 2>&1 </dev/null || status=$?
dmesg >/out/dmesg
if ((status == 124 || status == 137)); then
    {
        printf 'failed: still running after %s s\n' "$2"
        ps -o pid,ppid,stat,comm
        tail -n 20 /tmp/scheduler.log
    } >>/out/log
fi
((status == 0 || status == 77)) || status=1
exit $status
