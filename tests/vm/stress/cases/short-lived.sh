#!/bin/bash
# Thousands of processes that live for a moment.
. "$(dirname "$0")/../lib.sh"
begin
born=0
until=$((SECONDS + LOAD_S))
# A slow guest takes longer for them.
latest=$((SECONDS + LOAD_S * 5))
while ((SECONDS < until || (born < 2000 && SECONDS < latest))); do
    moment=()
    for ((i = 0; i < 50; i++)); do
        /bin/true &
        moment+=($!)
    done
    wait "${moment[@]}"
    born=$((born + 50))
done
say "$born processes"
assert_ge $born 2000 "processes that were born"
run_to_end stress-ng --quiet -t 5 --exec 4 --vfork 2 --pthread 2
finish
