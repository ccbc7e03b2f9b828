#!/bin/bash
# Hours of an ordinary mixed day, in rounds of a minute: periodic work with and without
# declarations, hogs, messages, forks, files, memory, users who declare and leave, and in
# two minutes of three declared tasks that compete.
# MINUTES says how many. Runs in the guest, for scripts/soak.sh.
. "$(dirname "$0")/lib.sh"

MINUTES=${MINUTES:-60}
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# A minute of work that declares nothing, of one kind after the other.
round() {
    case $(($1 % 6)) in
        0) stress-ng --quiet -t 50 --cpu "$CPUS" --timer 1 --switch 1 ;;
        1) stress-ng --quiet -t 50 --fork 1 --exec 1 --pthread 1 --cpu 1 ;;
        2) stress-ng --quiet -t 50 --vm 1 --vm-bytes 64M --hdd 1 --hdd-bytes 16M --temp-path /tmp ;;
        3) timeout 50 bash -c 'while :; do hackbench -p -g 2 -f 8 -l 100 >/dev/null; sleep 1; done' || true ;;
        4) stress-ng --quiet -t 50 --futex 2 --pipe 2 --poll 2 --nanosleep 2 ;;
        5) stress-ng --quiet -t 50 --cpu $((CPUS * 4)) --sched-runtime 0 --affinity 1 --nice 1 ;;
    esac
}

# Somebody comes, declares, works for a while and goes.
visitor_comes() {
    "${as_nobody[@]}" sentinel /tmp/visitor 50 2000 &
    visitor=$!
    is_there() { grep -qx sentinel "/proc/$visitor/comm"; }
    wait_for 10 is_there || fail "minute $minute: the visitor did not come"
    "${as_nobody[@]}" scx_temponet hint --runtime 5ms --period 50ms --pid $visitor || fail "minute $minute: the declaration was refused"
}

expect_rivals
begin
spin "$CPUS" nice -n 10
for ((minute = 1; minute <= MINUTES; minute++)); do
    started=$SECONDS
    ((minute % 3 == 0)) || start_rivals
    visitor_comes
    round "$minute" || fail "minute $minute: the load ended with status $?"
    dismiss $visitor
    if ((${#rivals[@]})); then stop_rivals; fi
    check_loaded
    report "minute $minute of $MINUTES"
    ((SECONDS - started >= 60)) || sleep $((60 - (SECONDS - started)))
    if ((minute % 10 == 0 || minute == MINUTES)); then
        printf 'minute=%d rss_kb=%d maps_kb=%d\n' "$minute" "$(agent_rss)" $(($(map_bytes) / 1024)) >>/out/memory
    fi
done
stop_spinning
finish
[[ $POLICY != temponet ]] || assert_ge "$(total decision)" 1 "dispatches by a decision of the agent"
