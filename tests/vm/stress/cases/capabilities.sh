#!/bin/bash
# It runs with the capabilities that its systemd unit grants, and with not one less.
. "$(dirname "$0")/../lib.sh"
granted=$(sed -n 's/^CapabilityBoundingSet=//p' /stress/scx_temponet.service | tr '[:upper:]' '[:lower:]' | sed 's/cap_//g')
[[ -n $granted ]] || fail "the unit grants nothing"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_nobody[@]}" sleep 1000 &
own=$!

# limited CAPABILITY...: a command prefix, in `prefix`.
limited() {
    local list=-all name
    for name; do list+=,+$name; done
    # LimitMEMLOCK= of the unit, so that locking memory takes no capability.
    prefix=(prlimit --memlock=unlimited:unlimited setpriv "--bounding-set=$list" '--inh-caps=-all')
}

# works: it loads, schedules, and takes a declaration of another user.
works() {
    local pid answer=1
    "${prefix[@]}" scx_temponet --policy "$POLICY" >"$SCHEDULER_LOG" 2>&1 &
    pid=$!
    loaded_or_gone() { scx_is enabled || is_gone "$pid"; }
    wait_for 60 loaded_or_gone || true
    if scx_is enabled && "${as_nobody[@]}" scx_temponet hint --runtime 1ms --period 100ms --pid $own 2>>"$SCHEDULER_LOG"; then answer=0; fi
    kill -INT $pid 2>/dev/null || true
    reap $pid
    wait_for 10 scx_is disabled || fail "still $(scx_state)"
    return $answer
}

read -ra names <<<"$granted"
limited "${names[@]}"
grep -q '^LimitMEMLOCK=infinity' /stress/scx_temponet.service || fail "the unit does not let it lock its memory"
works || fail "does not work with $granted: $(tail -n 3 "$SCHEDULER_LOG")"
! grep -q 'cannot lock' "$SCHEDULER_LOG" || fail "memory cannot be locked with $granted"
say "works with $granted"
for without in "${names[@]}"; do
    rest=()
    for name in "${names[@]}"; do [[ $name == "$without" ]] || rest+=("$name"); done
    limited "${rest[@]}"
    ! works || fail "it works without $without, so the unit need not grant it"
    said=$(grep -v -e INFO -e '^libbpf' "$SCHEDULER_LOG" | tail -n 1)
    [[ $said != *panicked* ]] || fail "a panic without $without"
    say "without $without: $said"
done
kill $own
reap $own
begin
finish
