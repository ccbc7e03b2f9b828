#!/bin/bash
# Runs in the guest for scripts/replay-figures.sh: one of its parts, results in /out.
set -euo pipefail
part=$1 seconds=$2

# periodic FILE SECONDS RUN/PERIOD...: a workload of threads that are released on a
# grid, in milliseconds.
periodic() {
    local file=$1 duration=$2 task separator=''
    shift 2
    {
        printf '{ "global": { "duration": %s, "calibration": "CPU0", "lock_pages": false }, "tasks": {\n' "$duration"
        for task in "$@"; do
            printf '%s "t%s": { "loop": -1, "run": %s, "timer": { "ref": "unique", "period": %s, "mode": "absolute" } }' \
                "$separator" "${task#*/}" "$((${task%/*} * 1000))" "$((${task#*/} * 1000))"
            separator=$',\n'
        done
        printf ' } }\n'
    } >"$file"
}

examples() {
    local file name
    cd /plan/examples
    find . -name '*.json' | sort | while read -r file; do
        name=${file#./}
        echo "replay: $name" >&2
        scx_temponet replay "$file" --live --against edf --horizon 1s --json >"/out/${name//\//:}" 2>/tmp/said </dev/null ||
            tail -n 1 /tmp/said >"/out/${name//\//:}.failed"
    done
}

agreement() {
    periodic /tmp/0.70.json 6 10/40 15/60 20/100
    periodic /tmp/0.90.json 6 12/40 18/60 30/100
    # Overload whose two cheaper threads need 0.88 of the CPU, and 0.66 of it.
    periodic /tmp/1.25-tight.json 6 17/40 27/60 38/100
    periodic /tmp/1.25-roomy.json 6 13/40 20/60 59/100
    local load
    for load in 0.70 0.90 1.25-tight 1.25-roomy; do
        scx_temponet replay "/tmp/$load.json" --live --against plain-edf,edf --cores 1 --policy edf,plain-edf,mh --json >"/out/$load.json"
    done
}

# Time on a CPU of every thread, in ticks of 10 ms, by the kernel's own count: the two
# parts are scaled so that their sum is exact.
counted() {
    local stat
    for stat in /proc/[0-9]*/task/[0-9]*/stat; do
        sed 's/ (.*) / /' "$stat" 2>/dev/null | awk '{ print $1, $13 + $14 }'
    done
}

recording() {
    periodic /tmp/load.json $((seconds + 120)) 1/40 2/60 3/100
    sed -i 's/"calibration": "CPU0"/"calibration": "CPU0", "log_size": 0/' /tmp/load.json
    rt-app /tmp/load.json >/dev/null 2>&1 &
    stress-ng --quiet --cpu 1 --cpu-load 5 --timer 1 --timer-freq 20 --timeout $((seconds + 120))s &
    # It calibrates first.
    until grep -qx t100 /proc/[0-9]*/task/[0-9]*/comm 2>/dev/null; do sleep 1; done
    sleep 2
    counted >/out/before
    cut -d' ' -f1 /proc/uptime >/out/from
    scx_temponet replay --record "$seconds" --json /out/recording.json >/out/measured
    cut -d' ' -f1 /proc/uptime >/out/to
    counted >/out/after
    kill %1 %2
    wait || true
}

"$part"
