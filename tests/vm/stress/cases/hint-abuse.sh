#!/bin/bash
# Users without rights flood the hint socket with forged and extreme requests about anybody's tasks.
. "$(dirname "$0")/../lib.sh"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
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
# Nor can the pinned map be had without rights.
! "${as_nobody[@]}" cat /sys/fs/bpf/scx_temponet/task_hints 2>/dev/null || fail "the pinned map can be opened by anybody"
kill $own
reap $own
finish
