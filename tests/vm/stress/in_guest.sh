#!/bin/bash
# Runs a case (cases/NAME) or the soak in the guest; its status is 0, 77 (does not
# apply here), 75 (the host disturbed it too much to tell) or 1. The
# case's own words, the kernel's and the figures come back in /out; what it says of its
# progress (`report` in lib.sh) is seen at once.
status=0
timeout -k 10 "$2" bash "/stress/$1.sh" 3>&1 >/out/log 2>&1 </dev/null || status=$?
dmesg >/out/dmesg
# 143: busybox's timeout has the status of the command.
if ((status == 124 || status == 137 || status == 143)); then
    {
        printf 'failed: still running after %s s\n' "$2"
        ps -o pid,ppid,stat,comm
        tail -n 20 /tmp/scheduler.log
    } >>/out/log
fi
((status == 0 || status == 77 || status == 75)) || status=1
exit $status
