#!/bin/bash
# Another model is taken over while jobs compete; one that is none is refused, the old
# one stays and goes on deciding.
#: again icount
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_agent.sh"

write_rivals
cp /vm/model.onnx /tmp/model.onnx
start_scheduler --policy temponet --rules /tmp/rules.toml --model /tmp/model.onnx
start_rivals
sleep 2
kill -HUP "$scheduler_pid"
wait_for 120 grep -q 'taking over the model' "$SCHEDULER_LOG" || fail "no model was taken over on SIGHUP"
sleep 2
seen=$(watch_calmly 4)
assert_ge "$(total decisions <<<"$seen")" 4 "decisions of the new model"
assert_eq "$(last allocations <<<"$seen")" 0 "allocations since it took over"
assert_eq "$(last page_faults <<<"$seen")" 0 "page faults since it took over"

head -c 60000 /dev/urandom >/tmp/model.onnx
kill -HUP "$scheduler_pid"
wait_for 120 grep -q 'keeping the model in use' "$SCHEDULER_LOG" || fail "noise was not refused"
seen=$(watch_calmly 4)
assert_ge "$(total decisions <<<"$seen")" 4 "decisions after noise was refused"
assert_ge "$(total decision <<<"$seen")" 1 "dispatches by a decision after that"
stop_rivals
stop_scheduler

# Nor does it start with such a model.
status=0
said=$(scx_temponet --policy temponet --model /tmp/model.onnx 2>&1) || status=$?
assert_eq "$status" 1 "status with a model that is none"
assert_match "$said" 'cannot use the model /tmp/model.onnx' "what was said of it"
assert_eq "$(scx_state)" disabled "state after that"
