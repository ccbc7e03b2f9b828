#!/bin/bash
# What the agent thinks of the tasks is what the kernel knows of them: while they move
# between CPUs, come, go and lose their declarations, and after records were lost.
#: again icount
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_agent.sh"

write_rivals
# Free to move, and enough of them to compete all the time: after a silence much is put right.
sed 's/ "cpus": \[0\],//; s/"instance": 4/"instance": 8/' /tmp/rivals.json >/tmp/roaming.json
! grep -q cpus /tmp/roaming.json || fail "they are not free to move"

# To compare so often takes more than it may use otherwise.
OFTEN=(--agent-budget 50 --resync-every)
start_scheduler --policy temponet --rules /tmp/rules.toml "${OFTEN[@]}" 0.1
start_rivals /tmp/roaming.json
sleep 2
seen=$(watch_calmly 6)
assert_ge "$(total resyncs <<<"$seen")" 4 "comparisons with the truth"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought while they moved"
assert_eq "$(last tasks <<<"$seen")" 8 "tasks the agent knows"
stop_rivals

# They are killed and others come, with other pids, while some compete all the time.
start_rivals
(
    for _ in 1 2 3 4; do
        sed 's/"ctl"/"ctlx"/; s/"instance": 8/"instance": 2/' /tmp/roaming.json >/tmp/guests.json
        timeout -s KILL 1.3 rt-app /tmp/guests.json >/dev/null 2>&1 || true
    done
) &
visitors=$!
seen=$(watch 6)
wait $visitors
assert_ge "$(total resyncs <<<"$seen")" 4 "comparisons with the truth"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought while others came and went"
assert_eq "$(watch 2 | last tasks)" 4 "tasks the agent knows after that"

# One that loses its declaration is told of too, though it never sleeps.
taskset -c 0 bash -c 'while :; do :; done' &
fifth=$!
scx_temponet hint --runtime 1ms --period 100ms --pid $fifth
(sleep 4 && scx_temponet hint --clear --pid $fifth) &
seen=$(watch 6)
kill $fifth
assert_eq "$(first tasks <<<"$seen")" 5 "tasks while a fifth was declared"
assert_eq "$(last tasks <<<"$seen")" 4 "tasks when it was not any more"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought"
stop_rivals
stop_scheduler

# Every third record gets lost: it is noticed and put right.
start_scheduler --policy temponet --rules /tmp/rules.toml --lose-records 333
start_rivals
sleep 2
seen=$(watch 6)
assert_ge "$(total ring_drops <<<"$seen")" 20 "records lost"
assert_ge "$(total resyncs <<<"$seen")" 2 "resynchronisations"
assert_ge "$(total repaired <<<"$seen")" 1 "tasks put right"
assert_eq "$(last tasks <<<"$seen")" 4 "tasks the agent knows"
stop_rivals
stop_scheduler

# What was put right stays right: a lost record makes one task wrong, once, though fifty times
# a second somebody looks.
start_scheduler --policy temponet --rules /tmp/rules.toml --lose-records 5 "${OFTEN[@]}" 0.02
start_rivals
sleep 2
# However slow the host: until it has looked often enough.
for seconds in 6 12 24; do
    seen=$(watch $seconds)
    (($(total resyncs <<<"$seen") < 30)) || break
done
lost=$(total ring_drops <<<"$seen")
assert_ge "$lost" 1 "records lost"
assert_ge "$(total resyncs <<<"$seen")" 30 "comparisons with the truth"
assert_le "$(total repaired <<<"$seen")" $((lost + 1)) "tasks put right, at most one for each record that was lost, then or just before"
stop_rivals
stop_scheduler
