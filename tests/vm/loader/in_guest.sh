#!/bin/bash
# Runs in the guest, for tests/vm/loader.sh.
. /tests/lib.sh

# --- the options for each mode
modes=0
while read -r mode options; do
    # shellcheck disable=SC2086
    scx_temponet $options >/tmp/scheduler.txt 2>&1 &
    scheduler=$!
    wait_for 120 scx_is enabled || { cat /tmp/scheduler.txt; fail "$mode: not loaded with '$options'"; }
    kill -INT $scheduler
    wait $scheduler || fail "$mode: ended with status $?"
    modes=$((modes + 1))
    printf '%-10s loaded: scx_temponet %s\n' "$mode" "$options"
done < <(sed -n 's/^\([a-z]*\)_mode = \[\(.*\)\]$/\1 \2/p' /vm/scx_loader.toml | tr -d '",')
assert_eq $modes 5 "modes that were tried"

# --- scx_loader, on a bus of its own that lets root do everything
cat >/tmp/bus.conf <<'XML'
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/tmp/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
XML
dbus-daemon --config-file=/tmp/bus.conf --nofork >/tmp/bus.txt 2>&1 &
wait_for 20 test -S /tmp/bus || { cat /tmp/bus.txt; fail "no bus"; }
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/tmp/bus

scx_loader >/tmp/loader.txt 2>&1 &
loader=$!
wait_for 30 scxctl list >/tmp/list.txt 2>&1 || { cat /tmp/loader.txt /tmp/list.txt; fail "scx_loader does not answer"; }
printf 'scxctl list: %s\n' "$(tr -s '\n ' ' ' </tmp/list.txt)"
if scxctl start --sched temponet --mode gaming >/tmp/start.txt 2>&1; then
    fail "scx_loader takes temponet now: docs/guide/boot.md says that it does not"
fi
printf 'scxctl start --sched temponet: %s\n' "$(tr -s '\n ' ' ' </tmp/start.txt)"
scx_is disabled || fail "sched_ext is $(scx_state)"

# Beside it, by hand, as without it.
scx_temponet >/tmp/scheduler.txt 2>&1 &
scheduler=$!
wait_for 120 scx_is enabled || { cat /tmp/scheduler.txt; fail "not loaded beside scx_loader"; }
printf 'scxctl get, with scx_temponet loaded by hand: %s\n' "$(scxctl get 2>&1 | tr -s '\n ' ' ')"
kill -INT $scheduler
wait $scheduler
kill $loader
wait $loader || true

# --- our options as its configuration
mkdir -p /etc/scx_loader
cp /vm/scx_loader.toml /etc/scx_loader/config.toml
status=0
timeout 10 scx_loader >/tmp/loader.txt 2>&1 || status=$?
printf 'scx_loader with packaging/scx_loader.toml: status %s: %s\n' $status "$(tail -n 6 /tmp/loader.txt | tr -s '\n ' ' ')"
((status != 124)) || fail "scx_loader takes our configuration now: docs/guide/boot.md says that it does not"
