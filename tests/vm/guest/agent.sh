#!/bin/bash
# The agent decides while jobs with deadlines compete, sleeps when none do, keeps
# a true picture of them though records get lost, and changes models while running.
. "$(dirname "$0")/lib.sh"

write_rivals
start_rivals() {
    rt-app /tmp/rivals.json >/tmp/rt-app.txt 2>&1 &
    rivals=$!
}
stop_rivals() {
    kill "$rivals"
    wait "$rivals" || true
}

# watch SECONDS: the figures of so many seconds, in two halves.
watch() { timeout -s INT $(($1 + 1)) scx_temponet monitor --json --interval "$(($1 / 2))" | tail -n +2 || true; }
# Of these figures, the sum, the first and the last.
total() { grep -o "\"$1\":[0-9.]*" | awk -F: '{ sum += $2 } END { print sum + 0 }'; }
first() { grep -o "\"$1\":[0-9.]*" | head -n 1 | cut -d: -f2; }
last() { grep -o "\"$1\":[0-9.]*" | tail -n 1 | cut -d: -f2; }

start_scheduler --policy temponet --rules /tmp/rules.toml --resync-every 0.1
start_rivals
sleep 2
# A host that holds the guest up may do so for longer than a decision stands, or than
# the agent is told of anything: what is always so shows in every one of these.
for _ in 1 2 3 4 5; do
    seen=$(watch 6)
    (($(total decision <<<"$seen") == 0 || $(total repaired <<<"$seen") > 0)) || break
done
assert_ge "$(total decisions <<<"$seen")" 4 "decisions in 6 s"
assert_ge "$(total decision <<<"$seen")" 1 "dispatches by a decision"
assert_ge "$(total resyncs <<<"$seen")" 4 "comparisons with the truth"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought"
assert_eq "$(last tasks <<<"$seen")" 4 "tasks the agent knows"
assert_eq "$(last allocations <<<"$seen")" 0 "allocations since warm-up"
assert_eq "$(last page_faults <<<"$seen")" 0 "page faults since warm-up"
# One that loses its declaration is told of too, though it never sleeps.
for _ in 1 2 3; do
    taskset -c 0 bash -c 'while :; do :; done' &
    fifth=$!
    scx_temponet hint --runtime 1ms --period 100ms --pid $fifth
    (sleep 4 && scx_temponet hint --clear --pid $fifth) &
    seen=$(watch 6)
    kill $fifth
    (($(total repaired <<<"$seen") > 0)) || break
done
assert_eq "$(first tasks <<<"$seen")" 5 "tasks while a fifth was declared"
assert_eq "$(last tasks <<<"$seen")" 4 "tasks when it was not any more"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought"
stop_rivals
sleep 2
assert_eq "$(watch 4 | total wakeups)" 0 "wake-ups of the agent on a quiet machine"
stop_scheduler

# Where all that was declared fits, deadlines are enough: jobs wait for each other, and nobody
# rings, unless a host held them up for so long that they were late.
sed 's/12ms/8ms/' /tmp/rules.toml >/tmp/fit.toml
sed 's/12000/4000/' /tmp/rivals.json >/tmp/fit.json
start_scheduler --policy temponet --rules /tmp/fit.toml
rt-app /tmp/fit.json >/tmp/rt-app.txt 2>&1 &
rivals=$!
sleep 2
for _ in 1 2 3 4 5; do
    seen=$(watch 4)
    (($(total rung <<<"$seen") > 0)) || break
done
assert_ge "$(total met <<<"$seen")" 100 "jobs that met their deadlines in 4 s"
assert_eq "$(total rung <<<"$seen")" 0 "times the agent was rung for though all fit"
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

# A model is taken over while running; noise is refused and the old one stays.
start_scheduler --policy temponet --stats 1
kill -HUP "$scheduler_pid"
wait_for 20 grep -q 'taking over the model' "$SCHEDULER_LOG" || fail "no model was taken over on SIGHUP"
stop_scheduler
echo noise >/tmp/model.onnx
status=0
said=$(scx_temponet --policy temponet --model /tmp/model.onnx 2>&1) || status=$?
assert_eq "$status" 1 "status with a model that is none"
assert_match "$said" 'cannot use the model /tmp/model.onnx' "what was said of it"
assert_eq "$(scx_state)" disabled "state after that"
