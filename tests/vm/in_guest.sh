#!/bin/bash
# Runs in the guest: the named tests of /tests, one after the other, with a verdict
# line each.
cd /tests || exit 1
for name in "$@"; do
    if [[ ! -f $name.sh ]]; then
        echo "FAIL  $name  (no such test)"
        continue
    fi
    started=$SECONDS
    status=0
    timeout -k 5 "${TEST_LIMIT:-300}" bash "$name.sh" >/tmp/test.log 2>&1 </dev/null || status=$?
    took="$((SECONDS - started)) s"
    case $status in
        0) echo "PASS  $name  ($took)" ;;
        77) echo "SKIP  $name  ($(tail -n 1 /tmp/test.log))" ;;
        3) echo "FAIL  $name  (the kernel complained, $took)" ;; # COMPLAINED in lib.sh
        4) echo "LATE  $name  $(sed -n 's/^late: \([0-9]*\) ms of \([0-9]*\):.*/\1 \2/p' /tmp/test.log | sort -rn | head -n 1)  ($took)" ;; # LATE in lib.sh
        124 | 137 | 143) echo "FAIL  $name  (killed after $took)" ;;
        *) echo "FAIL  $name  ($took)" ;;
    esac
    ((status == 0 || status == 77)) || sed 's/^/    /' /tmp/test.log
    # A test that was killed may have left its scheduler behind; that may be long in
    # the kernel before it goes.
    killall -q -9 scx_temponet stress-ng rt-app
    for ((i = 0; i < 300; i++)); do
        [[ $(cat /sys/kernel/sched_ext/state) == disabled && -z $(pidof scx_temponet) ]] && break
        sleep 0.1
    done
done
