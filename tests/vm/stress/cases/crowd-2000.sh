#!/bin/bash
# 2,000 tasks that want to run, all at once.
#: mem 2G
#: timeout 900
. "$(dirname "$0")/../lib.sh"
CROWD=2000
WAIT_BOUND_MS=$(wait_bound_ms $((CROWD / CPUS)))
begin
stress-ng --quiet --cpu $CROWD --cpu-method int64 &
crowd=$!
there() { (($(pgrep -c stress-ng) > CROWD)); }
wait_for 300 there || fail "only $(pgrep -c stress-ng) tasks came to be"
sleep "$LOAD_S"
started=$SECONDS
timeout 120 /bin/true || fail "a newcomer starved"
say "a newcomer was done after $((SECONDS - started)) s"
kill $crowd
wait_for 300 is_gone $crowd || fail "the crowd did not go"
finish
