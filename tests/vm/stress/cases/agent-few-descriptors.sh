#!/bin/bash
# The agent has hardly any file descriptors left: it loads or says why not, and serves on.
. "$(dirname "$0")/../lib.sh"
for limit in 3 8 16 24 32 48; do
    status=0
    said=$(timeout -s INT -k 10 10 prlimit --nofile=$limit:$limit scx_temponet --policy "$POLICY" 2>&1) || status=$?
    [[ $said != *panicked* ]] || fail "a panic with $limit descriptors: $said"
    [[ $status == 124 || -n $said ]] || fail "status $status with $limit descriptors and not a word"
    wait_for 10 scx_is disabled || fail "left loaded with $limit descriptors"
    say "$limit descriptors: status $status"
done
expect_rivals
begin
start_rivals
prlimit --pid "$scheduler_pid" --nofile=64:64
adversary hint 5 $$ >/dev/null
adversary stats 5 >/dev/null || true
prlimit --pid "$scheduler_pid" --nofile=4096:4096
sleep 1
scx_temponet hint --show --pid $$ >/dev/null || fail "the agent no longer answers"
finish
