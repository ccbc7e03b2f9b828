#!/bin/bash
# The packaged unit under a real systemd: what it takes away is gone, what the scheduler
# needs is left, and it starts, reloads, stops and restarts as it says.
. /tests/lib.sh

UNIT=/etc/systemd/system/scx_temponet.service
MODEL=/usr/lib/scx_temponet.onnx
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
verdict() { printf 'ok  %s\n' "$*"; }

property() { systemctl show --value -p "$2" "$1"; }
# Since the last `fresh`.
journal() { journalctl -q -o cat -u scx_temponet --since "@$since"; }
fresh() {
    systemctl reset-failed scx_temponet 2>/dev/null || true
    sleep 1.1 # the journal is asked for by seconds
    since=$(date +%s)
}
# drop_in LINE...: instead of the last ones.
drop_in() {
    mkdir -p $UNIT.d
    printf '%s\n' '[Service]' "$@" >$UNIT.d/test.conf
    systemctl daemon-reload
}
no_drop_in() {
    rm -rf $UNIT.d
    systemctl daemon-reload
}
is_state() { [[ $(property scx_temponet ActiveState) == "$1" ]]; }
enabled_or_failed() { scx_is enabled || is_state failed; }
failed() { journal | tail -n 25; fail "$@"; }
start() {
    systemctl start scx_temponet || failed "systemctl start"
    # Type=notify: systemd is told when it is loaded.
    scx_is enabled || failed "systemd has it started, and it is not loaded: $(property scx_temponet Result)"
    assert_match "$(scx_ops)" '^temponet' "who schedules"
    main=$(property scx_temponet MainPID)
}

# An emulator may take longer.
sed -i 's/^TimeoutStartSec=.*/TimeoutStartSec=180s/' $UNIT

# --- what is taken away, and what is left
# The same unit around a program that tries it all; plain root may do it.
touch /root/at-home /tmp/of-others
mkdir -p /run/scx_temponet /run/scx
probe >/tmp/plain
rm -r /run/scx_temponet /run/scx
sed -e 's|^ExecStart=.*|ExecStart=/usr/bin/probe|' -e 's/^Type=.*/Type=oneshot/' -e /^Restart=/d -e /^TimeoutStartSec=/d $UNIT >/etc/systemd/system/probe.service
sed 's/^RestrictAddressFamilies=.*/& AF_INET/' /etc/systemd/system/probe.service >/etc/systemd/system/probe-net.service
systemctl daemon-reload
for name in probe probe-net; do
    systemctl start $name || { journalctl -q -o cat -u $name; fail "$name.service: $(property $name Result)"; }
    journalctl --sync
    journalctl -q -o cat -t probe -u $name >/tmp/$name
done
assert_eq "$(wc -l </tmp/probe)" "$(wc -l </tmp/plain)" "lines of the probe"
while read -r name answer; do
    under_unit=$(sed -n "s|^$name ||p" /tmp/probe)
    assert_eq "$answer" allowed "$name for plain root"
    if [[ $name == +* ]]; then
        assert_eq "$under_unit" allowed "${name#+} in the unit"
    else
        [[ $under_unit != allowed ]] || fail "the unit does not hold ${name}="
        printf 'ok  %s=: %s\n' "$name" "$under_unit"
    fi
done < <(sed 's/^+Limit\(MEMLOCK\|NOFILE\) .*/+Limit\1 allowed/' /tmp/plain)
# The address family apart: systemd does this one with BPF.
if grep -q '^CONFIG_CGROUP_BPF=y' /boot/config-*; then
    assert_eq "$(sed -n 's/^RestrictAddressFamilies //p' /tmp/probe-net)" allowed "a socket where the family is allowed"
    [[ $(sed -n 's/^IPAddressDeny //p' /tmp/probe-net) != allowed ]] || fail "the unit does not hold IPAddressDeny="
    verdict "IPAddressDeny= by itself"
else
    verdict "IPAddressDeny= by itself: not with this kernel, which has no BPF for cgroups"
fi

# --- as packaged
write_rivals
cp /tmp/rules.toml /etc/scx_temponet.toml
cp /root/temponet.onnx $MODEL
mkdir -p /etc/default
printf 'SCX_TEMPONET_OPTIONS="--rules /etc/scx_temponet.toml --model %s"\n' $MODEL >/etc/default/scx_temponet
fresh
start
capabilities=$(awk '$1 ~ /^Cap(Eff|Prm|Bnd)/ { print $2 }' "/proc/$main/status" | sort -u)
assert_eq "$capabilities" 000000c000000000 "capabilities (BPF, PERFMON)"
assert_eq "$(awk '$1 == "Seccomp:" { print $2 }' "/proc/$main/status")" 2 "seccomp mode"
assert_ge "$(awk '$1 == "VmLck:" { print $2 }' "/proc/$main/status")" 1000 "KiB that are locked"
group=/sys/fs/cgroup$(property scx_temponet ControlGroup)
assert_eq "$(cat "$group/pids.max")" 512 "TasksMax="
assert_eq "$(cat "$group/memory.max")" $((512 << 20)) "MemoryMax="
verdict "loads with just its capabilities; $(cat "$group/pids.current") tasks, $(($(cat "$group/memory.peak" 2>/dev/null || cat "$group/memory.current") >> 20)) MiB at most"

# use: declarations, decisions by ONNX Runtime, another model.
use() {
    journal | grep -q 'ONNX Runtime\|onnxruntime' || failed "ONNX Runtime does not run the network"
    "${as_nobody[@]}" sleep 1000 &
    local own=$!
    "${as_nobody[@]}" scx_temponet hint --runtime 1ms --period 100ms --pid $own || failed "an ordinary user cannot declare"
    assert_match "$("${as_nobody[@]}" scx_temponet hint --show --pid $own)" '1 ?ms.*100 ?ms' "what was declared"
    kill $own
    rt-app /tmp/rivals.json >/tmp/rt-app.txt 2>&1 &
    local rivals=$! decided
    decisions() { timeout -s INT 4 scx_temponet monitor --json --interval 1 | grep -o '"decisions":[0-9]*' | awk -F: '{ sum += $2 } END { print sum + 0 }'; }
    some_decisions() { decided=$(decisions); ((decided > 0)); }
    wait_for 40 some_decisions || failed "the agent decides nothing"
    kill $rivals
    wait $rivals || true
    systemctl reload scx_temponet || failed "systemctl reload"
    taken_over() { journal | grep 'taking over the model' | grep -q 'ONNX Runtime\|onnxruntime'; }
    wait_for 30 taken_over || failed "no model was taken over"
    mv $MODEL /root/good.onnx
    echo noise >$MODEL
    systemctl reload scx_temponet
    kept() { journal | grep -q 'keeping the model in use'; }
    wait_for 30 kept || failed "noise was not refused"
    mv /root/good.onnx $MODEL
    scx_is enabled || failed "thrown out"
}
use
status=0
scx_temponet status >/tmp/status || status=$?
assert_le "$status" 1 "what status ends with"
assert_eq "$(wc -l </tmp/status)" 5 "lines of status"
verdict "$(head -n 1 /tmp/status), $(sed -n 2p /tmp/status)"
verdict "a user's declaration, decisions by ONNX Runtime, another model: $(journal | grep 'model' | head -n 1)"

# quits: as asked, leaving nothing.
quits() {
    local began ended stopping
    began=${EPOCHREALTIME/[.,]/}
    systemctl stop scx_temponet &
    stopping=$!
    wait_for 60 scx_is disabled || failed "sched_ext is $(scx_state) after systemctl stop"
    ended=${EPOCHREALTIME/[.,]/}
    given_back_ms=$(((ended - began) / 1000))
    wait $stopping || failed "systemctl stop ended with status $?"
    ended=${EPOCHREALTIME/[.,]/}
    stopped_ms=$(((ended - began) / 1000))
    assert_eq "$(property scx_temponet Result)" success "result of a stop"
    assert_eq "$(property scx_temponet ExecMainStatus)" 0 "status of a stop"
    local left
    for left in /run/scx_temponet /run/scx /sys/fs/bpf/scx_temponet; do [[ ! -e $left ]] || fail "$left was left behind"; done
}
quits
if journal | grep -v 'keeping the model in use' | grep -iE 'panicked|not permitted|denied|cannot'; then fail "something was refused to it"; fi
verdict "the kernel's scheduler is back $given_back_ms ms after systemctl stop, which ends after $stopped_ms ms"
status=0
scx_temponet status >/tmp/status || status=$?
assert_eq "$status" 3 "what status ends with when nothing is loaded"

# --- the filter
# Any call beyond the filter is the end of it, so nothing that was refused goes unnoticed.
drop_in SystemCallErrorNumber=kill
fresh
start
use
quits
verdict "no call beyond SystemCallFilter="
# And that would be seen.
drop_in SystemCallErrorNumber=kill 'SystemCallFilter=~bpf'
fresh
systemctl start scx_temponet || true
wait_for 60 is_state failed || failed "it is $(property scx_temponet ActiveState) though it may not call bpf()"
assert_eq "$(property scx_temponet ExecMainStatus)" 31 "signal that ended it"
assert_eq "$(scx_state)" disabled "state without bpf()"
drop_in 'SystemCallFilter=~bpf'
fresh
systemctl start scx_temponet || true
wait_for 60 is_state failed || failed "it is $(property scx_temponet ActiveState) though bpf() is refused"
! journal | grep -q panicked || failed "a panic without bpf()"
verdict "a filter that is too narrow is noticed: $(journal | grep -v '^systemd\|^scx_temponet.service\|^libbpf\|INFO' | grep -m 1 -i 'error\|permitted\|cannot')"
no_drop_in

# --- Restart=, StartLimitBurst=
fresh
start
other_main() { local now; now=$(property scx_temponet MainPID); [[ $now != 0 && $now != "$main" ]]; }
kill -KILL "$main"
wait_for 20 other_main || failed "not started again after SIGKILL"
wait_for 120 enabled_or_failed || failed "not loaded again after SIGKILL"
wait_for 60 scx_is enabled || failed "not loaded again: $(property scx_temponet Result)"
assert_eq "$(property scx_temponet NRestarts)" 1 "restarts after one SIGKILL"
assert_match "$(scx_ops)" '^temponet' "who schedules after that"
verdict "killed: started again"
for ((i = 0; i < 3; i++)); do
    systemctl kill -s KILL scx_temponet
    sleep 1.5
done
wait_for 30 is_state failed || failed "killed four times in a row, it is $(property scx_temponet ActiveState)"
wait_for 10 scx_is disabled || failed "sched_ext is $(scx_state) when systemd has given up"
journal | grep -q 'repeated too quickly' || failed "given up for another reason"
verdict "killed again and again: given up, the kernel's scheduler is back"
