#!/bin/bash
# A daemon in a pid namespace of its own, as in a container, does not know the numbers that the
# kernel half sees its threads under. Its agent passes the queues all the same.
#: again icount
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_agent.sh"

write_rivals
printf '#!/bin/bash\nexec unshare -p -f scx_temponet "$@"\n' >/tmp/namespaced
chmod +x /tmp/namespaced
SCHEDULER=/tmp/namespaced start_scheduler --policy temponet --rules /tmp/rules.toml
start_rivals
sleep 2
seen=$(watch_calmly 6)
assert_ge "$(total decisions <<<"$seen")" 4 "decisions in 6 s"
assert_ge "$(total agent_thread <<<"$seen")" 1 "times that the agent passed the queues"
stop_rivals
# A signal to the first process would not reach the daemon.
killall -INT scx_temponet
wait "$scheduler_pid" || true
scheduler_pid=''
wait_for 10 scx_is disabled || fail "sched_ext is still $(scx_state) after the scheduler ended"
