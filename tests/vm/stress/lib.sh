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
WAIT_BOUND_MS=$BOUND_MS
# More options of the scheduler.
OPTIONS=()
# How often the scheduler may be loaded: once, unless the case reloads it.
LOADS=1
# A busy host takes the guest's CPUs away; bound and floors give way by what it took. Where
# it took more than this nothing can be judged, and the case ends with a status of its own.
MOST_HOST_STALL_MS=1000
LEAST_HOST_SHARE=0.8
DISTURBED=75
# Of the dispatches, so many must be runs.
LEAST_RUNS=0.9
# Memory that the agent may gain, and maps may keep, beyond what they had.
RSS_GROWTH_KB=16384
MAPS_GROWTH=1.5

# The bound for so many tasks waiting per CPU: 3 ticks each, and BOUND_MS at least.
wait_bound_ms() {
    local hz
    hz=$(sed -n 's/^CONFIG_HZ=//p' "/boot/config-$(uname -r)")
    awk -v n="$1" -v hz="$hz" -v least="$BOUND_MS" 'BEGIN { b = 3 * n * 1000 / hz; print (b > least ? b : least) }'
}

# Whether Linux keeps some of each CPU for sched_ext when real-time tasks do not let go.
keeps_some_for_sched_ext() {
    [[ -d /sys/kernel/debug/sched ]] || mount -t debugfs debugfs /sys/kernel/debug
    [[ -d /sys/kernel/debug/sched/ext_server ]]
}

say() { printf '  %s\n' "$*"; }
# How far a long case is, for whoever waits for it.
report() { printf '%s\n' "$*" >&3; }
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

# The BPF half wakes the agent only where more is claimed than one CPU surely has. These
# claim 1.2 of CPU 0 and wake up together, so that there is something to decide; they use
# a sixth of that, so that all can be on time nevertheless.
RIVALS=4
RIVAL_RULES=/tmp/rivals.toml
rivals=()

# To be called before `begin`.
expect_rivals() {
    ln -sf "$(command -v sentinel)" /tmp/rival
    printf '[[rule]]\ncomm = "rival"\nruntime = "12ms"\nperiod = "40ms"\n' >$RIVAL_RULES
    OPTIONS+=(--rules $RIVAL_RULES)
}

start_rivals() {
    local i
    for ((i = 0; i < RIVALS; i++)); do
        taskset -c 0 /tmp/rival "/tmp/rival-$i" 40 2000 together &
        rivals+=($!)
    done
}

# They were there all the time, and worked.
stop_rivals() {
    local i
    need_alive "${rivals[@]}"
    kill "${rivals[@]}"
    reap "${rivals[@]}"
    rivals=()
    for ((i = 0; i < RIVALS; i++)); do
        assert_ge "$(done_in_time "/tmp/rival-$i")" 1 "jobs of rival $i that were on time"
    done
}
done_in_time() { awk -F= '{ v[$1] = $2 } END { print v["jobs"] - v["missed"] }' "$1"; }

# With rivals there was something to decide: an agent that slept all the time was not tested.
check_agent() {
    [[ $POLICY == temponet && " ${OPTIONS[*]} " == *" $RIVAL_RULES "* ]] || return 0
    assert_ge "$(total agent_decisions)" 1 "decisions of the agent"
}

# need_alive PID...: a load that ended by itself was none.
need_alive() {
    local pid
    for pid; do
        if is_gone "$pid"; then fail "task $pid ended too soon"; fi
    done
}

# dismiss PID...: loads that are still there, and go when they are told to.
dismiss() {
    need_alive "$@"
    kill "$@"
    reap "$@"
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

# within SECONDS COMMAND...: its status, or 124 where it had to be ended. The guest's own
# timeout, busybox's, has the status of the command, which may well be 0 then.
within() {
    local limit=$1 status=0 started=$SECONDS
    shift
    timeout -k 5 "$limit" "$@" || status=$?
    ((SECONDS - started < limit)) || status=124
    return $status
}

# run_to_end COMMAND...: it must succeed.
run_to_end() {
    local status=0
    within $((LOAD_S * 10 + 120)) "$@" || status=$?
    ((status != 124)) || fail "never ended: $*"
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
    need_alive "${spinning[@]}"
    kill -KILL "${spinning[@]}"
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

# run_class CLASS [STRESS-NG OPTION]...: a second of each of its stressors. Many want
# hardware that is not there, so not all need run, but half of the class must, and
# half of these for their second.
run_class() {
    local class=$1
    shift
    stress_class "$class" --sequential "$CPUS" --timeout 1 "$@"
    assert_ge "$class_took_s" $((class_ran / 2)) "seconds that class $class took"
}

# run_class_at_once CLASS [STRESS-NG OPTION]...: all of its stressors together.
run_class_at_once() {
    local class=$1
    shift
    stress_class "$class" --all 1 --timeout "$LOAD_S" "$@"
    assert_ge "$class_took_s" $((LOAD_S - 1)) "seconds that class $class took, all at once"
}

# Leaves class_ran (stressors) and class_took_s. What stress-ng thinks of it is not asked
# for, as long as it ends.
stress_class() {
    local class=$1 status=0 listed
    shift
    within 800 stress-ng --class "$class" --oomable "$@" >/tmp/class.log 2>&1 || status=$?
    ((status != 124)) || fail "class $class never ended"
    class_ran=$(sed -n 's/.*dispatching hogs: //p' /tmp/class.log | tr ',' '\n' | grep -c .) || fail "class $class: $(tail -n 3 /tmp/class.log)"
    class_took_s=$(sed -n 's/.* run completed in \([0-9]*\).*/\1/p' /tmp/class.log)
    listed=$(stress-ng --class "$class?" 2>&1 | sed -n 's/.*stressors: //p' | wc -w)
    say "class $class $*: status $status, $class_ran of $listed stressors in ${class_took_s:-?} s"
    assert_ge "$listed" 10 "stressors of class $class"
    assert_ge "$class_ran" $((listed / 2)) "stressors of class $class that were run"
}

# value FILE NAME: one that is not there is an error, and no figure.
value() { sed -n "s/^$2=//p" "$1" | grep . || { printf 'failed: no %s in %s\n' "$2" "$1" >&2; return 1; }; }
total() { value /tmp/figures "$1"; }
sum() {
    local name one all=0
    for name; do
        one=$(total "$name") || return 1
        all=$((all + one))
    done
    echo "$all"
}

end_sentinels() {
    local name
    for name in "${!sentinels[@]}"; do
        kill "${sentinels[$name]}" 2>/dev/null || fail "sentinel $name died"
        reap "${sentinels[$name]}"
    done
}

# Nothing, and an error, where the file does not say.
on_time() { awk -F= '{ v[$1] = $2 } END { if (v["jobs"] < 1 || v["missed"] == "") { print "failed: no jobs in " FILENAME >"/dev/stderr"; exit 1 } printf "%.4f", 1 - v["missed"] / v["jobs"] }' "/tmp/sentinel-$1"; }

# How long the host stopped the guest at most, in ms, and which share of 100 ms intervals it
# left, by the tasks that nothing in the guest keeps waiting but sections without interrupts.
measure_host() {
    local name share worst
    host_stall_ms=0 host_share=1
    for name in "${!sentinels[@]}"; do
        [[ $name == control* ]] || continue
        worst=$(value "/tmp/sentinel-$name" worst_us)
        if ((worst / 1000 > host_stall_ms)); then host_stall_ms=$((worst / 1000)); fi
        share=$(on_time "$name")
        host_share=$(awk -v a="$host_share" -v b="$share" 'BEGIN { print (a < b ? a : b) }')
    done
    # A wait of seconds may meet the longest stall at both ends.
    WAIT_BOUND_MS=$((${WAIT_BOUND_MS%.*} + 2 * host_stall_ms))
}

# Long sections without interrupts, which may be ours, look like a busy host too: too much
# of either is never a pass.
refuse_if_disturbed() {
    if awk -v stall="$host_stall_ms" -v most=$MOST_HOST_STALL_MS -v share="$host_share" -v least=$LEAST_HOST_SHARE \
        'BEGIN { exit !(stall > most || share < least) }'; then
        check_dmesg
        printf 'disturbed: the guest was stopped for up to %s ms, and left %s of its intervals\n' "$host_stall_ms" "$host_share"
        exit $DISTURBED
    fi
}

floor() { awk -v floor="$1" -v share="$host_share" 'BEGIN { print floor * share }'; }

check_sentinels() {
    local name worst aside
    assert_ge "$(on_time free)" "$(floor "$COMPLIANCE_FLOOR")" "share of jobs on time, declared task"
    assert_ge "$(on_time pinned)" "$(floor "${COMPLIANCE_FLOOR_PINNED:-$COMPLIANCE_FLOOR}")" "share of jobs on time, declared and pinned task"
    # Its longest response bounds its longest wait. A job that was pushed aside before it was
    # done has waited more than once.
    for name in free pinned humble; do
        worst=$(value "/tmp/sentinel-$name" worst_us)
        aside=$(value "/tmp/sentinel-$name" worst_pushed_aside)
        assert_le "$worst" $((WAIT_BOUND_MS * 1000 + 500000)) "us that $name took at worst, pushed aside $aside times"
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
    assert_eq "$(total impossible)" none "figures that cannot be"
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
    dispatched=$(sum idle queue bound kthread decision q_table distilled agent_thread)
    runs=$(sum declared_runs inferred_runs background_runs late_runs)
    assert_ge "$runs" "$(awk -v d="$dispatched" -v least=$LEAST_RUNS 'BEGIN { print d * least - 100 }')" "runs of $dispatched dispatches"
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
        humble_pushed_aside "$(value /tmp/sentinel-humble worst_pushed_aside)" \
        wait_max_ms "$(for c in declared inferred background late; do total ${c}_wait_max_us; done | sort -n | awk 'END { printf "%.0f", $1 / 1000 }')" \
        bound_ms "$WAIT_BOUND_MS" host_stall_ms "$host_stall_ms" host_share "$host_share" \
        idle "$(total idle)" queue "$(total queue)" bound "$(total bound)" kthread "$(total kthread)" \
        decision "$(total decision)" q_table "$(total q_table)" distilled "$(total distilled)" agent_thread "$(total agent_thread)" \
        agent_decisions "$(total agent_decisions)" agent_rung "$(total agent_rung)" \
        runs "$(sum declared_runs inferred_runs background_runs late_runs)" \
        preemptions "$(total preemptions)" demotions "$(total demotions)" hopeless "$(total hopeless)" \
        rss_before_kb "$rss_before" rss_after_kb "$rss_after" \
        maps_before_kb $((maps_before / 1024)) maps_after_kb $((maps_after / 1024)) \
        seconds "$(total seconds)" >/out/figures
    cp "$SCHEDULER_LOG" /out/scheduler.log
    cp /tmp/figures /out/totals
    tail -n +1 /tmp/sentinel-* >/out/sentinels
    if grep '=$' /out/figures; then fail "figures without a value"; fi
}

finish() {
    sleep 2
    check_loaded
    if ((${#rivals[@]})); then stop_rivals; fi
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
    check_memory
    check_agent
    stop_scheduler
    assert_eq "$scheduler_status" 0 "exit status of the scheduler"
    refuse_if_disturbed
    check_waits
    check_sentinels
}
