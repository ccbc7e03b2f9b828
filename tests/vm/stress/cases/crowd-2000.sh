#!/bin/bash
# 2,000 tasks that want to run, all at once.
#: mem 2G
#: timeout 900
. "$(dirname "$0")/../lib.sh"
CROWD=2000
WAIT_BOUND_MS=$(wait_bound_ms $((CROWD / CPUS)))
begin
# From many parents: one alone would have a thousandth of a CPU to fork the last ones.
crowd=()
for ((i = 0; i < 40; i++)); do
    stress-ng --quiet --cpu $((CROWD / 40)) --cpu-method int64 &
    crowd+=($!)
done
here() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^stress-ng' || true; }
all_here() { (($(here) > CROWD)); }
wait_for 300 all_here || fail "only $(here) tasks came to be"
sleep "$LOAD_S"
started=$SECONDS
timeout 120 /bin/true || fail "a newcomer starved"
say "a newcomer was done after $((SECONDS - started)) s"
kill "${crowd[@]}"
for pid in "${crowd[@]}"; do wait_for 300 is_gone "$pid" || fail "the crowd did not go"; done
finish
