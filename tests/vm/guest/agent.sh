#!/bin/bash
# The agent decides while jobs with deadlines compete, knows them as they are, and
# sleeps when none compete or all that was declared fits.
#: again icount
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_agent.sh"

write_rivals
start_scheduler --policy temponet --rules /tmp/rules.toml --resync-every 0.5
assert_match "$(cat "$SCHEDULER_LOG")" "model temponet \($(expected_backend)" "what runs the network"
start_rivals
sleep 2
seen=$(watch_calmly 6)
assert_ge "$(total decisions <<<"$seen")" 4 "decisions in 6 s"
assert_ge "$(total decision <<<"$seen")" 1 "dispatches by a decision"
assert_ge "$(total resyncs <<<"$seen")" 4 "comparisons with the truth"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought"
assert_eq "$(last tasks <<<"$seen")" 4 "tasks the agent knows"
assert_eq "$(last allocations <<<"$seen")" 0 "allocations since warm-up"
assert_eq "$(last page_faults <<<"$seen")" 0 "page faults since warm-up"
stop_rivals
sleep 2
assert_eq "$(watch 4 | total wakeups)" 0 "wake-ups of the agent on a quiet machine"
stop_scheduler

# Where all that was declared fits, deadlines are enough: jobs wait for each other, and nobody
# rings, unless a host held them up for so long that they were late.
sed 's/12ms/8ms/' /tmp/rules.toml >/tmp/fit.toml
sed 's/12000/4000/' /tmp/rivals.json >/tmp/fit.json
start_scheduler --policy temponet --rules /tmp/fit.toml
start_rivals /tmp/fit.json
sleep 2
for _ in 1 2 3 4 5; do
    seen=$(watch 4)
    (($(total rung <<<"$seen") > 0)) || break
done
assert_ge "$(total met <<<"$seen")" 100 "jobs that met their deadlines in 4 s"
assert_eq "$(total rung <<<"$seen")" 0 "times the agent was rung for though all fit"
stop_rivals
stop_scheduler
