#!/bin/bash
# A task may no longer use the CPUs that it last ran on when it wakes up: its affinity or its
# cpuset was changed while it slept. It must be queued where a CPU that it may use looks for
# it, in every tier, beside hogs that keep all CPUs busy.
#: again icount
. "$(dirname "$0")/lib.sh"
(($(nproc) >= 4)) || skip "four CPUs are needed"

# CPUs that share a last-level cache with CPU 0, and those that do not.
near=$(cat /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list 2>/dev/null) || skip "no last-level cache is known"
far=()
for cpu in $(seq 0 $(($(nproc) - 1))); do
    if [[ $(cat "/sys/devices/system/cpu/cpu$cpu/cache/index3/shared_cpu_list") != "$near" ]]; then far+=("$cpu"); fi
done
((${#far[@]})) || skip "all CPUs share a last-level cache"
far=$(IFS=,; echo "${far[*]}")

# The name of a sleeper says what it is.
cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "background"
class = "background"
[[rule]]
comm = "declared"
runtime = "2ms"
deadline = "20ms"
period = "100ms"
TOML
for tier in background inferred declared idle; do ln -sf "$(command -v bash)" /tmp/$tier; done

start_scheduler --stats 1 --rules /tmp/rules.toml
spin='while :; do :; done'
for place in "$near" "$near" "$near" "$far" "$far" "$far"; do
    taskset -c "$place" bash -c "$spin" &
    all+=($!)
done

CPUSET=/sys/fs/cgroup/placement
by_cpuset() { [[ -e $CPUSET/cpuset.cpus ]]; }
if grep -qw cpuset /sys/fs/cgroup/cgroup.controllers; then
    echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
    mkdir -p $CPUSET
fi

# Sleeps until it is told to run; says when it did.
sleeper='
echo ready >"$1.ready"
while read -r told; do
    echo "$EPOCHREALTIME" >"$1.woke"
done <"$1.fifo"
'
ms() { awk -v t="$1" 'BEGIN { printf "%.0f", t * 1000 }'; }
asleep() { [[ $(cut -d' ' -f3 "/proc/$1/stat") == S ]]; }

# story TIER HOW: moved away while it sleeps, then back, then woken up each time.
story() {
    local tier=$1 how=$2 name=/tmp/$1-$2 pid place asked woke
    rm -f "$name".*
    mkfifo "$name.fifo"
    taskset -c "$near" "/tmp/$tier" -c "$sleeper" sleeper "$name" &
    pid=$!
    all+=($pid)
    exec {fd}>"$name.fifo"
    wait_for 30 test -e "$name.ready" || fail "$tier, $how: the task did not start"
    if [[ $tier == idle ]]; then chrt -i -p 0 $pid; fi
    for place in "$far" "$near" "$far"; do
        wait_for 30 asleep $pid || fail "$tier, $how: the task does not sleep"
        if [[ $how == affinity ]]; then
            taskset -p -c "$place" $pid >/dev/null
        else
            echo "$place" >$CPUSET/cpuset.cpus
            echo $pid >$CPUSET/cgroup.procs
            taskset -p -c "0-$(($(nproc) - 1))" $pid >/dev/null
        fi
        rm -f "$name.woke"
        asked=$EPOCHREALTIME
        echo go >&"$fd"
        wait_for 30 test -s "$name.woke" || fail "$tier, moved by $how to CPUs $place while it slept: it did not run for 30 s"
        # It may wait more than once before it has said so; how long it waits at a time the
        # scheduler counts (below).
        woke=$(<"$name.woke")
        assert_le "$(($(ms "$woke") - $(ms "$asked")))" $((3 * BOUND_MS)) "ms that a task of tier $tier took, moved by $how to CPUs $place while it slept"
    done
    exec {fd}>&-
}

for tier in background inferred declared idle; do
    story $tier affinity
    if by_cpuset; then story $tier cpuset; fi
done
kill "${all[@]}" 2>/dev/null || true
wait "${all[@]}" 2>/dev/null || true
sleep 2
assert_waits $BOUND_MS
stop_scheduler
