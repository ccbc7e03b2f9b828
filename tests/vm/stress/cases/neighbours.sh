#!/bin/bash
# Another sched_ext scheduler before and after, under load, without a pause between.
. "$(dirname "$0")/../lib.sh"
command -v scx_bpfland >/dev/null || skip "no other scheduler here (scripts/peers.sh)"
spin $((CPUS * 2))
for round in 1 2 3; do
    SCHEDULER=scx_bpfland start_scheduler
    sleep 1
    stop_scheduler
    start_scheduler --policy "$POLICY"
    sleep 1
    assert_match "$(scx_ops)" '^temponet' "who is loaded in round $round"
    stop_scheduler
done
begin
sleep 5
stop_spinning
finish
SCHEDULER=scx_bpfland start_scheduler
sleep 1
stop_scheduler
