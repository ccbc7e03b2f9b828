#!/bin/bash
# The agent decides while jobs with deadlines compete, sleeps when none do, keeps
# a true picture of them though records get lost, and changes models while running.
. "$(dirname "$0")/lib.sh"
BOUND_MS=4000

# Three declared tasks that never sleep claim 1.2 of one CPU.
start_rivals() {
    rivals=()
    for ((i = 0; i < 3; i++)); do
        taskset -c 0 bash -c 'while :; do :; done' &
        scx_temponet hint --runtime 4ms --deadline 10ms --period 10ms --pid $!
        rivals+=($!)
    done
}
stop_rivals() {
    kill "${rivals[@]}"
    wait "${rivals[@]}" || true
}

# watch SECONDS: the agent's figures of so many whole seconds, one line each.
watch() { timeout -s INT $(($1 + 1)).5 scx_temponet monitor --json --interval 1 | tail -n +2; }
# total NAME: of the figures of watch, the sum.
total() { grep -o "\"$1\":[0-9.]*" | awk -F: '{ sum += $2 } END { print sum + 0 }'; }
last() { grep -o "\"$1\":[0-9.]*" | tail -n 1 | cut -d: -f2; }

start_scheduler --policy temponet --hint-util-max 2 --stats 1 --resync-every 0.1
start_rivals
sleep 1
seen=$(watch 4)
assert_ge "$(total decisions <<<"$seen")" 20 "decisions in 4 s"
assert_ge "$(total decision <<<"$seen")" 20 "dispatches by a decision"
assert_ge "$(total resyncs <<<"$seen")" 8 "comparisons with the truth"
assert_eq "$(total repaired <<<"$seen")" 0 "tasks that were not as the agent thought"
assert_eq "$(last tasks <<<"$seen")" 3 "tasks the agent knows"
assert_eq "$(last allocations <<<"$seen")" 0 "allocations since warm-up"
assert_eq "$(last page_faults <<<"$seen")" 0 "page faults since warm-up"
stop_rivals
sleep 2
assert_eq "$(watch 3 | total wakeups)" 0 "wake-ups of the agent on a quiet machine"
stop_scheduler

# Every third record gets lost: it is noticed and put right.
start_scheduler --policy temponet --hint-util-max 2 --lose-records 333
start_rivals
sleep 1
seen=$(watch 4)
assert_ge "$(total ring_drops <<<"$seen")" 20 "records lost"
assert_ge "$(total resyncs <<<"$seen")" 5 "resynchronisations"
assert_ge "$(total repaired <<<"$seen")" 1 "tasks put right"
assert_eq "$(last tasks <<<"$seen")" 3 "tasks the agent knows"
stop_rivals
stop_scheduler

# A model is taken over while running; noise is refused and the old one stays.
echo noise >/tmp/model.onnx
start_scheduler --policy temponet --hint-util-max 2 --stats 1
kill -HUP "$scheduler_pid"
wait_for 20 grep -q 'taking over the model' "$SCHEDULER_LOG" || fail "no model was taken over on SIGHUP"
stop_scheduler
status=0
said=$(scx_temponet --policy temponet --model /tmp/model.onnx 2>&1) || status=$?
assert_eq "$status" 1 "status with a model that is none"
assert_match "$said" 'cannot use the model /tmp/model.onnx' "what was said of it"
assert_eq "$(scx_state)" disabled "state after that"
