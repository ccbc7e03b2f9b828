#!/bin/bash
# Runs in the guest: every test of /tests, or the named ones, one after the
# other, with a verdict line each.
cd /tests || exit 1
if (($# == 0)); then
    for file in *.sh; do [[ $file == lib.sh ]] || set -- "$@" "${file%.sh}"; done
fi
for name in "$@"; do
    if [[ ! -f $name.sh ]]; then
        echo "FAIL  $name  (no such test)"
        continue
    fi
    started=$SECONDS
    status=0
    timeout -k 5 "${TEST_LIMIT:-180}" bash "$name.sh" >/tmp/test.log 2>&1 </dev/null || status=$?
    took="$((SECONDS - started)) s"
    case $status in
        0) echo "PASS  $name  ($took)" ;;
        77) echo "SKIP  $name  ($(tail -n 1 /tmp/test.log))" ;;
        124 | 137 | 143) echo "FAIL  $name  (killed after $took)" ;;
        *) echo "FAIL  $name  ($took)" ;;
    esac
    ((status == 0 || status == 77)) || sed 's/^/    /' /tmp/test.log
    # A test that was killed may have left its scheduler behind.
    killall -q -9 scx_temponet stress-ng rt-app
    for ((i = 0; i < 100; i++)); do
        [[ $(cat /sys/kernel/sched_ext/state) == disabled ]] && break
        sleep 0.1
    done
done
