# shellcheck shell=bash
# What the tests in the guest share. A test is a bash script that sources this
# file, says with `fail` what went wrong, and ends with status 0 otherwise (77:
# it does not apply here). The end of every test checks the kernel's log. Lines such as
# `#: again icount` are for tests/vm/run.sh.
set -euo pipefail

SCX=/sys/kernel/sched_ext
SCHEDULER_LOG=/tmp/scheduler.log
# docs/scheduler.md, "The bound": TN_STARVE_BOUND of bpf/intf.h, by tests/docs.rs.
BOUND_MS=4000
COMPLAINED=3 # status of a test whose kernel did: no host is an excuse for that
LATE=4       # of one in which nothing but a wait was too long, by the guest's clock
scheduler_pid='' too_late=0

fail() { printf 'failed: %s\n' "$*"; exit 1; }
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

assert_eq() { [[ $1 == "$2" ]] || fail "${3:-value}: expected '$2', got '$1'"; }
assert_match() { [[ $1 =~ $2 ]] || fail "${3:-value}: '$1' does not match '$2'"; }
# An empty value is nobody's: a wrong name, or a command that failed.
is_number() { [[ $1 =~ ^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$ ]]; }
need_numbers() { is_number "$1" && is_number "$2" || fail "$3: '$1' and '$2' are not both numbers"; }
assert_le() {
    need_numbers "$1" "$2" "${3:-value}"
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }' || fail "${3:-value}: $1 is more than $2"
}
assert_ge() {
    need_numbers "$1" "$2" "${3:-value}"
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }' || fail "${3:-value}: $1 is less than $2"
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}

scx_state() { cat $SCX/state; }
scx_is() { [[ $(scx_state) == "$1" ]]; }
# The name the loaded scheduler gave itself; empty when none is.
scx_ops() { cat $SCX/root/ops 2>/dev/null || true; }

scheduler_is_gone() { [[ ! -d /proc/$scheduler_pid || $(cut -d' ' -f3 "/proc/$scheduler_pid/stat") == Z ]]; }
enabled_or_gone() { scx_is enabled || scheduler_is_gone; }

# start_scheduler [ARGUMENT]...: scx_temponet, loaded when this returns.
# Another program: SCHEDULER=scx_bpfland start_scheduler.
start_scheduler() {
    "${SCHEDULER:-scx_temponet}" "$@" >"$SCHEDULER_LOG" 2>&1 &
    scheduler_pid=$!
    if ! wait_for "${LOAD_WITHIN_S:-180}" enabled_or_gone || ! scx_is enabled; then
        tail -n 40 "$SCHEDULER_LOG"
        fail "${SCHEDULER:-scx_temponet} $* did not load"
    fi
}

# Asks the scheduler to go, as Ctrl-C does, and waits until the kernel's own
# one is back. Sets scheduler_status.
stop_scheduler() {
    kill -INT "$scheduler_pid"
    if ! wait_for 30 scheduler_is_gone; then
        kill -KILL "$scheduler_pid"
        fail "the scheduler did not end on SIGINT"
    fi
    scheduler_status=0
    wait "$scheduler_pid" || scheduler_status=$?
    scheduler_pid=''
    wait_for 10 scx_is disabled || fail "sched_ext is still $(scx_state) after the scheduler ended"
}

# Four periodic tasks that ask for 1.2 of one CPU, as a workload, and rules that declare them.
write_rivals() {
    cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "ctl*"
runtime = "12ms"
period = "40ms"
TOML
    cat >/tmp/rivals.json <<'JSON'
{ "global": { "duration": 600, "calibration": 100, "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "ctl": { "instance": 4, "loop": -1, "cpus": [0], "runtime": 12000,
    "timer": { "ref": "unique", "period": 40000, "mode": "absolute" } } } }
JSON
}

# figures: all that the scheduler counted since load, as JSON.
figures() { scx_temponet monitor --json --once --since-load; }

# figure FILTER: one of them, as jq finds it; nothing where there is none.
figure() { figures | jq -r "$1 // empty"; }

# came_to LEVEL: how often it came to decide.
came_to() { figure ".agent.transitions[\"$1\"]"; }

# assert_waits BOUND_MS [WHAT]: the longest wait of each class, so far. The guest's clock goes
# on while the host runs other work, which the guest cannot see. So a wait that is too long by
# this clock does not end the test: tests/vm/run.sh judges it in the time that the guest had.
assert_waits() {
    local seen class waited
    seen=$(figures)
    for class in declared inferred background late; do
        waited=$(jq -r ".classes.$class.wait_max_us / 1000" <<<"$seen")
        need_numbers "$waited" "$1" "${2:-}longest wait in class $class"
        if awk -v a="$waited" -v b="$1" 'BEGIN { exit !(a > b) }'; then
            printf 'late: %.0f ms of %d: %slongest wait in class %s\n' "$waited" "$1" "${2:-}" "$class"
            too_late=1
        fi
    done
}

# What no test may leave in the kernel's log.
check_dmesg() {
    local complaint='runnable task stall|WARNING:|BUG:|rcu.*stall|soft lockup|blocked for more than|RCU.*detected|disabled \(runtime error'
    if dmesg | grep -E "$complaint"; then
        dmesg | tail -n 40
        fail "the kernel complained"
    fi
}

end_of_test() {
    local status=$?
    trap - EXIT
    # A command that ended with that status is no wait.
    if ((status == LATE)); then status=1; fi
    if ((status == 0 && too_late)); then status=$LATE; fi
    # What the test started in the background, whether or not it got to the end.
    jobs -p | xargs -r kill -KILL 2>/dev/null || true
    if [[ -n $scheduler_pid ]]; then
        wait_for 10 scx_is disabled || true
    fi
    if ((status != 0 && status != 77)) && [[ -s $SCHEDULER_LOG ]]; then
        printf 'the scheduler said:\n'
        tail -n 20 "$SCHEDULER_LOG"
    fi
    # In a subshell, because check_dmesg ends what it runs in.
    (check_dmesg) || status=$COMPLAINED
    exit "$status"
}

trap end_of_test EXIT
rm -f "$SCHEDULER_LOG"
# From here on the kernel's log is this test's.
dmesg -c >/dev/null
