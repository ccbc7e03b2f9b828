# shellcheck shell=bash
# Runs in the guest: the measurements that scripts/compare plans. A plan is a
# bash script that sources this file, calibrates once and calls run_* for every
# scheduler and repeat. A run leaves its figures in /out/NAME; one that fails
# leaves the reason in /out/NAME/failed.
. /tests/lib.sh

# What rt-app has to know of this machine: nanoseconds per loop, measured once
# while nothing else runs.
#
# No huge pages: once in ten seconds khugepaged would hold the memory map of whoever is
# being measured for 4 to 6 ms, and whichever scheduler it meets would lose jobs.
calibrate() {
    echo never >/sys/kernel/mm/transparent_hugepage/enabled
    cat >/tmp/calibrate.json <<'JSON'
{ "global": { "duration": 1, "calibration": "CPU0", "lock_pages": false, "logdir": "/tmp" },
  "tasks": { "calibrate": { "loop": 1, "run": 1000 } } }
JSON
    calibration=$(rt-app /tmp/calibrate.json 2>&1 | sed -n 's/.*pLoad = \([0-9]*\)ns.*/\1/p')
    [[ -n $calibration ]] || fail "rt-app did not calibrate"
    echo "$calibration" >/out/calibration
}

# run KIND NAME SCHEDULER ...: one run under `SCHEDULER` (a command line; empty
# for the kernel's own), which must still be loaded at the end.
run() {
    local kind=$1 name=$2 scheduler=$3
    shift 3
    echo "$name"
    mkdir -p "/out/$name"
    (
        trap end_of_test EXIT
        dmesg -c >/dev/null
        read -ra words <<<"$scheduler"
        if ((${#words[@]})); then SCHEDULER=${words[0]} start_scheduler "${words[@]:1}"; fi
        "$kind" "/out/$name" "$@"
        if ((${#words[@]})); then
            scx_is enabled || fail "the scheduler was thrown out"
            stop_scheduler
        fi
    ) >/tmp/run.log 2>&1 || cp /tmp/run.log "/out/$name/failed"
    if [[ -n $scheduler ]]; then cp "$SCHEDULER_LOG" "/out/$name/scheduler.log"; fi
    # Real-time throttling as the kernel has it, whatever the run set.
    sysctl -q -w kernel.sched_rt_runtime_us=950000
}

now() { cut -d' ' -f1 /proc/uptime; }

# Sleeps until so many seconds after a moment of now().
sleep_until() { sleep "$(awk -v from="$1" -v wait="$2" -v now="$(now)" 'BEGIN { s = from + wait - now; print (s > 0 ? s : 0) }')"; }

start_hogs() {
    hogs_pid=''
    (($1)) || return 0
    stress-ng --quiet --cpu "$1" --cpu-method int64 &
    hogs_pid=$!
}

# CPU seconds that the hogs have had.
hogs_cpu() {
    local pid ticks=0
    for pid in $(pidof stress-ng stress-ng-cpu | tr ' ' '\n' | sort -u); do
        # Past the name in brackets, utime and stime are fields 12 and 13.
        ticks=$((ticks + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }')))
    done
    awk -v ticks=$ticks 'BEGIN { print ticks / 100 }'
}

stop_hogs() {
    [[ -n $hogs_pid ]] || return 0
    kill -TERM "$hogs_pid"
    wait "$hogs_pid" || true
}

declare_hint() {
    local tid=$1 runtime=$2 deadline=$3 period=$4
    scx_temponet hint --runtime "${runtime}us" --deadline "${deadline}us" --period "${period}us" --pid "$tid" ||
        fail "the hint for thread $tid was refused"
}

thread_called() { grep -lx "$2" "/proc/$1"/task/*/comm 2>/dev/null | cut -d/ -f5; }
has_thread_called() { [[ -n $(thread_called "$1" "$2") ]]; }

# Runs a command on some CPUs only, in a cgroup that owns them: SCHED_DEADLINE
# admits no task that may not run on every CPU it accounts together.
DEADLINE_CGROUP=/sys/fs/cgroup/deadline
on_own_cpus() {
    local cpus=$1
    shift
    mkdir -p $DEADLINE_CGROUP
    echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
    echo "$cpus" >$DEADLINE_CGROUP/cpuset.cpus
    echo root >$DEADLINE_CGROUP/cpuset.cpus.partition
    echo "$BASHPID" >$DEADLINE_CGROUP/cgroup.procs
    exec "$@"
}

# start_stats FILE SECONDS: the scheduler's own figures, a line after every so many
# seconds, while ours is loaded. The first line comes at once and is of no time at all.
# Seldom: whoever asks again and again disturbs what it asks about.
start_stats() {
    stats_pid=''
    [[ $(scx_ops) == *temponet* ]] || return 0
    stats_file=$1
    scx_temponet monitor --json --interval "$2" >"$1" 2>/dev/null &
    stats_pid=$!
}

has_figures() { (($(wc -l <"$stats_file") > 1)); }

stop_stats() {
    [[ -n $stats_pid ]] || return 0
    # In overload the answer may have to wait until the load is gone.
    wait_for 3 has_figures || true
    kill -TERM "$stats_pid"
    wait "$stats_pid" || true
}

# start_rtapp OUT WORKLOAD LAUNCHER... -- [NAME:RUNTIME:DEADLINE:PERIOD]...: rt-app as
# $rtapp since $started; the named of its threads have hints (microseconds).
start_rtapp() {
    local out=$1 workload=$2 launcher=() hint name runtime deadline period
    shift 2
    while [[ $1 != -- ]]; do launcher+=("$1"); shift; done
    shift
    sed "s/@CALIBRATION@/$calibration/; s|@LOGDIR@|$out|" "$workload" >/tmp/workload.json
    started=$(now)
    "${launcher[@]}" rt-app /tmp/workload.json >"$out/rt-app.txt" 2>&1 &
    rtapp=$!
    for hint in "$@"; do
        IFS=: read -r name runtime deadline period <<<"$hint"
        wait_for 5 has_thread_called "$rtapp" "$name" || fail "rt-app started no thread $name"
        declare_hint "$(thread_called "$rtapp" "$name")" "$runtime" "$deadline" "$period"
    done
}

# Its threads sleep for so many seconds; until that is over.
await_rtapp() {
    awk -v from="$started" -v now="$(now)" -v delay="$1" 'BEGIN { exit !(now - from < delay) }' || fail "the start took longer than $1 s"
    sleep_until "$started" "$1"
}

# rt OUT WORKLOAD CPUS ADMISSION HOGS DELAY [NAME:RUNTIME:DEADLINE:PERIOD]...:
# rt-app on the given CPUs beside the given hogs. Its threads sleep for DELAY
# seconds first, and in that time the named ones get hints (microseconds).
# ADMISSION is that of SCHED_DEADLINE: default or forced. Where the kernel does
# not admit the set, OUT/refused is all there is.
rt() {
    local out=$1 workload=$2 cpus=$3 admission=$4 hogs=$5 delay=$6 started rtapp launcher=(taskset -c "$3") status=0
    shift 6
    if [[ $admission == forced ]]; then
        sysctl -q -w kernel.sched_rt_runtime_us=-1
    elif grep -q SCHED_DEADLINE "$workload" && [[ $cpus != 0-* ]]; then
        launcher=(on_own_cpus "$cpus")
    fi
    start_rtapp "$out" "$workload" "${launcher[@]}" -- "$@"
    start_hogs "$hogs"
    # Just before the first job: in overload nobody would have time to ask. The answer comes when
    # the jobs that count are over, before rt-app ends.
    await_rtapp "$(awk -v delay="$delay" 'BEGIN { print delay - 0.3 }')"
    local cpu_before time_before
    cpu_before=$(hogs_cpu) time_before=$(now)
    start_stats "$out/stats" "$(awk -v all="$(sed -n 's/.*"duration": *\([0-9]*\).*/\1/p' /tmp/workload.json)" -v delay="$delay" 'BEGIN { print all - delay - 0.4 }')"
    wait "$rtapp" || status=$?
    echo "$cpu_before $(hogs_cpu) $time_before $(now)" >"$out/hogs"
    stop_stats
    stop_hogs
    if [[ -d $DEADLINE_CGROUP ]]; then rmdir $DEADLINE_CGROUP; fi
    if ((status)) && [[ $admission == default ]] && grep -q SCHED_DEADLINE "$workload" && grep -q 'sched_setattr: Device or resource busy' "$out/rt-app.txt"; then
        cp "$out/rt-app.txt" "$out/refused"
        return 0
    fi
    ((status == 0)) || fail "rt-app ended with status $status: $(tail -n 3 "$out/rt-app.txt")"
}

# throughput OUT CPUS SECONDS MESSAGES [WORKLOAD DELAY NAME:RUNTIME:DEADLINE:PERIOD...]:
# context switches per second, and the time that so many messages of every sender take,
# beside the jobs of rt-app where there is a workload.
throughput() {
    local out=$1 cpus=$2 seconds=$3 messages=$4 workload=${5:-} delay=${6:-0} started rtapp
    if [[ -n $workload ]]; then
        start_rtapp "$out" "$workload" -- "${@:7}"
        await_rtapp "$delay"
        # Often enough that some figures are of each measurement.
        start_stats "$out/stats" "$(awk -v all="$seconds" 'BEGIN { print all / 2 }')"
    fi
    stress-ng --switch "$cpus" --timeout "${seconds}s" --metrics-brief >"$out/switch" 2>&1 || fail "stress-ng: $(tail -n 2 "$out/switch")"
    hackbench -g 2 -f 10 -l "$messages" >"$out/hackbench" 2>&1 || fail "hackbench: $(tail -n 2 "$out/hackbench")"
    if [[ -n $workload ]]; then
        stop_stats
        kill -TERM "$rtapp" || fail "rt-app ended before the measurements did"
        wait "$rtapp" || true
    fi
}

# latency OUT THREADS HOGS SECONDS INTERVAL HINT [WORKLOAD DELAY NAME:RUNTIME:DEADLINE:PERIOD...]:
# cyclictest's wake-up latencies of SCHED_OTHER threads, which do not wake up in step with each
# other, beside hogs or the jobs of rt-app. HINT is theirs, or empty: RUNTIME:DEADLINE:PERIOD.
latency() {
    local out=$1 threads=$2 hogs=$3 seconds=$4 interval=$5 hint=$6 workload=${7:-} delay=${8:-0}
    local tid runtime deadline period started rtapp cyclictest
    if [[ -n $workload ]]; then
        start_rtapp "$out" "$workload" -- "${@:9}"
        await_rtapp "$delay"
    fi
    cyclictest --quiet --policy=other --threads="$threads" --interval="$interval" --distance=29 \
        --duration="$seconds" --nsecs --verbose >"$out/cyclictest" 2>&1 &
    cyclictest=$!
    # Time for its threads to be there; the same for those without hints.
    sleep 0.3
    # Linux may have timers of SCHED_OTHER wait for 50 us, and whether it does depends on when the
    # tick comes: five times what is to be measured.
    for tid in /proc/"$cyclictest"/task/*; do echo 1 >"/proc/${tid##*/}/timerslack_ns"; done
    if [[ -n $hint ]]; then
        IFS=: read -r runtime deadline period <<<"$hint"
        for tid in /proc/"$cyclictest"/task/*; do
            tid=${tid##*/}
            [[ $tid == "$cyclictest" ]] || declare_hint "$tid" "$runtime" "$deadline" "$period"
        done
    fi
    start_hogs "$hogs"
    start_stats "$out/stats" "$((seconds - 2))"
    wait "$cyclictest" || fail "cyclictest ended with status $?: $(tail -n 3 "$out/cyclictest")"
    stop_stats
    stop_hogs
    if [[ -n $workload ]]; then wait "$rtapp" || fail "rt-app ended with status $?: $(tail -n 3 "$out/rt-app.txt")"; fi
}
