# shellcheck shell=bash
# What the stress cases share. A case sources this file, calls `begin`, does its
# worst, and calls `finish`, which holds the scheduler to its promises:
#
#   never ejected, nothing in the kernel's log, no lost task, waits within the
#   bound, declared tasks on time, memory bounded, counters consistent.
#
# The comment at the top of a case is what `scripts/stress.sh --list` shows; lines
# such as `#: mem 2G` in it are options of scripts/vm.
# shellcheck source=../guest/lib.sh
. /tests/lib.sh

POLICY=${POLICY:-temponet}
LOAD_S=${LOAD_S:-20}
CPUS=$(nproc)
LAST_CPU=$((CPUS - 1))

# What a case may ask of itself before `begin`, where its load justifies it.
# Share of the jobs of declared tasks that must be on time, by their own clock.
COMPLIANCE_FLOOR=0.9
# docs/scheduler.md, "The bound".
WAIT_BOUND_MS=4000
# More options of the scheduler.
OPTIONS=()
# How often the scheduler may be loaded: once, unless the case reloads it.
LOADS=1
# Memory that the agent may gain, and maps may keep, beyond what they had.
RSS_GROWTH_KB=16384
MAPS_GROWTH=1.5

# The bound for so many tasks waiting per CPU: 3 ticks each, 4 s at least.
wait_bound_ms() {
    local hz
    hz=$(sed -n 's/^CONFIG_HZ=//p' "/boot/config-$(uname -r)")
    awk -v n="$1" -v hz="$hz" 'BEGIN { b = 3 * n * 1000 / hz; print (b > 4000 ? b : 4000) }'
}

# Whether Linux keeps some of each CPU for sched_ext when real-time tasks do not let go.
keeps_some_for_sched_ext() {
    mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
    [[ -d /sys/kernel/debug/sched/ext_server ]]
}

say() { printf '  %s\n' "$*"; }
loads_so_far() { cat $SCX/enable_seq; }
# KiB.
agent_rss() { awk '/^VmRSS/ { print $2 }' "/proc/$scheduler_pid/status"; }
# Bytes of all BPF maps the agent has open. Files and tasks may vanish while they are read.
map_bytes() { { cat /proc/"$scheduler_pid"/fdinfo/* 2>/dev/null || true; } | awk '/^memlock/ { sum += $2 } END { print sum + 0 }'; }
nr_tasks() { { find /proc/[0-9]*/task -mindepth 1 -maxdepth 1 2>/dev/null || true; } | wc -l; }

# start_sentinel NAME WORK_US [COMMAND PREFIX]...: a task with so much to do every 100 ms.
start_sentinel() {
    local name=$1 work=$2
    shift 2
    "$@" sentinel "/tmp/sentinel-$name" 100 "$work" &
    sentinels[$name]=$!
}

# Ten times what it does: CPU time in a guest includes what the host takes.
declare_sentinel() { scx_temponet hint --runtime 10ms --deadline 100ms --period 100ms --pid "${sentinels[$1]}"; }

declare -A sentinels=()

begin() {
    loads_before=$(loads_so_far)
    start_scheduler --policy "$POLICY" "${OPTIONS[@]}"
    watch_figures
    start_sentinel free 1000
    start_sentinel pinned 1000 taskset -c "$LAST_CPU"
    # So little that one turn is enough: how long that takes is how long it waits.
    start_sentinel humble 250 nice -n 19
    # Above all that sched_ext schedules: when these are late, the guest itself was not
    # running, and nobody in it is to blame.
    for cpu in $(seq 0 "$LAST_CPU"); do start_sentinel "control$cpu" 100 chrt -f 99 taskset -c "$cpu"; done
    declare_sentinel free
    declare_sentinel pinned
    sleep 2
    rss_before=$(agent_rss)
    maps_before=$(map_bytes)
    tasks_before=$(nr_tasks)
}

watch_figures() {
    stats_watch /tmp/figures &
    watcher=$!
}

# for_a_while COMMAND...: runs it for LOAD_S seconds, then sends it away. One that
# ends by itself before has failed.
for_a_while() {
    "$@" &
    local pid=$!
    sleep "$LOAD_S"
    [[ -d /proc/$pid ]] || fail "ended too soon: $*"
    kill "$pid"
    reap "$pid"
}

# reap PID...: they must end, and soon: a task that cannot is a lost one.
reap() {
    local pid
    for pid; do
        if ! wait_for 90 is_gone "$pid"; then
            say "state of $pid: $(cat "/proc/$pid/stat" "/proc/$pid/wchan" 2>/dev/null)"
            fail "task $pid is lost"
        fi
        wait "$pid" 2>/dev/null || true
    done
}

is_gone() { [[ ! -d /proc/$1 || $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null) == [ZX] ]]; }

# run_to_end COMMAND...: it must succeed.
run_to_end() {
    local status=0
    timeout -k 5 $((LOAD_S * 10 + 120)) "$@" || status=$?
    ((status != 124 && status != 137)) || fail "never ended: $*"
    ((status == 0)) || fail "status $status: $*"
}

# spin N [COMMAND PREFIX]...: that many tasks that never sleep; their pids in `spinning`.
spinning=()
spin() {
    local n=$1 i
    shift
    for ((i = 0; i < n; i++)); do
        "$@" bash -c 'while :; do :; done' &
        spinning+=($!)
    done
}

stop_spinning() {
    kill -KILL "${spinning[@]}" 2>/dev/null || true
    reap "${spinning[@]}"
    spinning=()
}

# utime + stime.
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# make_cgroup NAME: with the controllers that the cases want; prints its folder.
make_cgroup() {
    local controller folder=/sys/fs/cgroup/$1
    for controller in cpu memory pids; do
        grep -qw $controller /sys/fs/cgroup/cgroup.controllers || skip "no cgroup controller $controller"
        echo +$controller >/sys/fs/cgroup/cgroup.subtree_control
    done
    mkdir -p "$folder"
    echo "$folder"
}

# run_class CLASS [STRESS-NG OPTION]...: a second of each of its stressors, and what
# they say does not matter as long as they end: many want hardware that is not there.
run_class() {
    local class=$1 status=0
    shift
    timeout -k 5 800 stress-ng --quiet --class "$class" --sequential "$CPUS" --timeout 1 --oomable "$@" || status=$?
    ((status != 124 && status != 137)) || fail "class $class never ended"
}

# value FILE NAME
value() { sed -n "s/^$2=//p" "$1"; }
total() { value /tmp/figures "$1"; }
sum() {
    local name all=0
    for name; do all=$((all + $(total "$name") + 0)); done
    echo "$all"
}

end_sentinels() {
    local name
    for name in "${!sentinels[@]}"; do
        kill "${sentinels[$name]}" 2>/dev/null || fail "sentinel $name died"
        reap "${sentinels[$name]}"
    done
}

on_time() { awk -v jobs="$(value "/tmp/sentinel-$1" jobs)" -v missed="$(value "/tmp/sentinel-$1" missed)" 'BEGIN { printf "%.4f", jobs ? 1 - missed / jobs : 0 }'; }

# A busy host takes the guest's CPUs away. How long at most, in ms, and which share of
# 100 ms intervals was left, by the tasks that only the host can keep waiting.
measure_host() {
    local name share
    host_stall_ms=0 host_share=1
    for name in "${!sentinels[@]}"; do
        [[ $name == control* ]] || continue
        host_stall_ms=$(awk -v a="$host_stall_ms" -v b="$(value "/tmp/sentinel-$name" worst_us)" 'BEGIN { b = int(b / 1000); print (a > b ? a : b) }')
        share=$(on_time "$name")
        host_share=$(awk -v a="$host_share" -v b="$share" 'BEGIN { print (a < b ? a : b) }')
    done
    # A wait of seconds may meet the longest stall at both ends.
    WAIT_BOUND_MS=$((${WAIT_BOUND_MS%.*} + 2 * host_stall_ms))
}

floor() { awk -v floor="$1" -v share="$host_share" 'BEGIN { print floor * share }'; }

check_sentinels() {
    local name worst
    assert_ge "$(on_time free)" "$(floor "$COMPLIANCE_FLOOR")" "share of jobs on time, declared task"
    assert_ge "$(on_time pinned)" "$(floor "${COMPLIANCE_FLOOR_PINNED:-$COMPLIANCE_FLOOR}")" "share of jobs on time, declared and pinned task"
    # A task that declares nothing: its longest response bounds its longest wait.
    for name in free pinned humble; do
        worst=$(value "/tmp/sentinel-$name" worst_us)
        assert_le "$worst" $((WAIT_BOUND_MS * 1000 + 500000)) "us that $name took at worst"
    done
}

check_waits() {
    local class
    for class in declared inferred background late; do
        assert_le "$(total ${class}_wait_max_us)" $((WAIT_BOUND_MS * 1000)) "longest wait (us) in class $class"
    done
}

check_memory() {
    assert_le "$rss_after" $((rss_before + RSS_GROWTH_KB)) "resident KiB of the agent (it began with $rss_before)"
    assert_le "$maps_after" "$(awk -v b="$maps_before" -v g="$MAPS_GROWTH" 'BEGIN { print b * g }')" "bytes of maps (it began with $maps_before)"
}

# Counters that contradict each other are as bad as none.
check_counters() {
    local class jobs runs ran dispatched
    assert_eq "$(total impossible)" '' "figures that cannot be"
    assert_ge "$(total samples)" 2 "times that figures were had"
    # A job ends at most once; what was open when the watch began may end too.
    for class in declared inferred; do
        jobs=$(sum ${class}_met ${class}_missed)
        assert_le "$jobs" $(($(total ${class}_released) + tasks_before)) "jobs that ended in class $class"
    done
    # A CPU second lasts a second.
    ran=$(sum declared_run_ms inferred_run_ms background_run_ms late_run_ms)
    assert_le "$ran" "$(awk -v s="$(total seconds)" -v c="$CPUS" 'BEGIN { print s * 1000 * c * 1.02 + 100 }')" "ms of CPU time given out"
    assert_ge "$ran" 1 "ms of CPU time given out"
    # Who is dispatched runs, unless taken out of the local queue again: that is
    # counted anew when it comes back. Who is pushed aside by another class runs
    # again without a dispatch.
    dispatched=$(sum idle queue bound kthread by_agent by_table by_distilled agent_self)
    runs=$(sum declared_runs inferred_runs background_runs late_runs)
    assert_ge "$runs" "$(awk -v d="$dispatched" 'BEGIN { print d * 0.9 - 100 }')" "runs of $dispatched dispatches"
    assert_eq "$(total hints_invalid)" "${HINTS_INVALID:-0}" "hints in the map that made no sense"
}

check_loaded() {
    scheduler_is_gone && fail "the scheduler ended by itself"
    assert_eq "$(scx_state)" enabled "state after the load"
    assert_match "$(scx_ops)" '^temponet' "who is loaded"
    if [[ $LOADS != any ]]; then
        assert_eq $(($(loads_so_far) - loads_before)) "$LOADS" "times that a scheduler was loaded"
    fi
}

# What a reader of the results wants to know of this case.
note_figures() {
    printf '%s=%s\n' \
        jobs "$(sum declared_released inferred_released)" \
        declared_met "$(total declared_met)" declared_missed "$(total declared_missed)" \
        on_time_free "$(on_time free)" on_time_pinned "$(on_time pinned)" \
        humble_worst_ms "$(($(value /tmp/sentinel-humble worst_us) / 1000))" \
        wait_max_ms "$(for c in declared inferred background late; do total ${c}_wait_max_us; done | sort -n | awk 'END { printf "%.0f", $1 / 1000 }')" \
        bound_ms "$WAIT_BOUND_MS" host_stall_ms "$host_stall_ms" host_share "$host_share" \
        idle "$(total idle)" queue "$(total queue)" bound "$(total bound)" kthread "$(total kthread)" \
        by_agent "$(total by_agent)" by_table "$(total by_table)" by_distilled "$(total by_distilled)" \
        runs "$(sum declared_runs inferred_runs background_runs late_runs)" \
        preemptions "$(total preemptions)" demotions "$(total demotions)" hopeless "$(total hopeless)" \
        rss_before_kb "$rss_before" rss_after_kb "$rss_after" \
        maps_before_kb $((maps_before / 1024)) maps_after_kb $((maps_after / 1024)) \
        seconds "$(total seconds)" >/out/figures
    cp "$SCHEDULER_LOG" /out/scheduler.log
    cp /tmp/figures /out/totals
    tail -n +1 /tmp/sentinel-* >/out/sentinels
}

finish() {
    sleep 2
    check_loaded
    end_sentinels
    measure_host
    kill "$watcher"
    reap "$watcher"
    # Freed entries of task storage go after a grace period.
    sleep 1
    rss_after=$(agent_rss)
    maps_after=$(map_bytes)
    note_figures
    check_counters
    check_waits
    check_sentinels
    check_memory
    stop_scheduler
    assert_eq "$scheduler_status" 0 "exit status of the scheduler"
}
