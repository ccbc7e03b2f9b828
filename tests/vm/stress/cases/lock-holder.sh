#!/bin/bash
# A declared task waits in the kernel for a thread that has no CPU.
. "$(dirname "$0")/../lib.sh"
OPTIONS=(--hint-util-max 3)
begin
# Three per CPU, where one fits: what that leaves, the others take, who are always late.
for ((cpu = 0; cpu < CPUS; cpu++)); do
    for who in "$cpu"{a,b,c}; do
        taskset -c "$cpu" sentinel "/tmp/busy-$who" 20 14000 &
        spinning+=($!)
        scx_temponet hint --runtime 14ms --deadline 20ms --period 20ms --pid "${spinning[-1]}"
    done
done
sentinel /tmp/sentinel-mapper 100 1000 map &
sentinels[mapper]=$!
declare_sentinel mapper
sleep "$LOAD_S"
stop_spinning
finish
say "share of jobs on time, with the map locked by a thread without a CPU: $(on_time mapper), at worst $(($(value /tmp/sentinel-mapper worst_us) / 1000)) ms"
assert_ge "$(on_time mapper)" "$(floor 0.8)" "share of jobs on time, task that wants the map"
