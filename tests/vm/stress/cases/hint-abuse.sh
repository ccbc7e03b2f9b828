#!/bin/bash
# Forged and extreme hints: in floods by users without rights, and by root straight into the map.
. "$(dirname "$0")/../lib.sh"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# Whoever may write the map may write anything: nobody else declares, so that the figures
# of declared tasks are those of the victim.
start_scheduler --policy "$POLICY"
sentinel /tmp/victim 20 1000 &
victim=$!
sleep 1
adversary map $victim >/tmp/forged || fail "no hint can be forged"
sed 's/^/  /' /tmp/forged
assert_eq "$(grep -c ^senseless /tmp/forged)" 18 "senseless hints"
assert_eq "$(grep -c '^senseless .* invalid=[1-9][0-9]* declared=0 runs=[1-9]' /tmp/forged)" 18 "senseless hints that were found out, with the task going on undeclared"
assert_eq "$(grep -c '^valid .* invalid=0 declared=[1-9]' /tmp/forged)" 3 "extreme hints that were taken at their word"
assert_ge "$(cpu_ticks $victim)" 50 "CPU ticks of the victim"
dismiss $victim
assert_eq "$(scx_state)" enabled "state after forged hints"

# Nor can the pinned map be had without rights, where the kernel lets users ask.
sysctl -q -w kernel.unprivileged_bpf_disabled=0 || say "users may not even ask"
"${as_nobody[@]}" adversary open-map >/tmp/opened || fail "anybody can open the pinned map"
sed 's/^/  /' /tmp/opened
[[ $(grep -cE 'os error (1|13)\)' /tmp/opened) == 3 ]] || fail "refused for another reason than rights"
adversary open-map >/dev/null 2>&1 && fail "root cannot open the map either, so this says nothing"
stop_scheduler

begin
sleep 0.1 & exited=$!
wait $exited
"${as_nobody[@]}" sleep 1000 & own=$!
for ((i = 0; i < 3; i++)); do
    "${as_nobody[@]}" adversary hint "$LOAD_S" 1 $$ "$scheduler_pid" "${sentinels[free]}" $exited $own >/tmp/abuse-$i &
    abusers+=($!)
done
reap "${abusers[@]}"
say "$(cat /tmp/abuse-*)"
[[ $(cat /tmp/abuse-*) == *refused_* ]] || fail "nothing was refused"
# What others declared is as it was; what may be granted was the user's own.
for name in free pinned; do
    assert_match "$(scx_temponet hint --show --pid "${sentinels[$name]}")" 'runtime 10ms deadline 100ms period 100ms' "declaration of sentinel $name"
done
for pid in 1 $$ "$scheduler_pid"; do
    assert_match "$(scx_temponet hint --show --pid "$pid")" 'no|nothing' "hint of task $pid"
done
dismiss $own
finish
