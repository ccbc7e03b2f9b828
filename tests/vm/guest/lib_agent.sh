# shellcheck shell=bash
# What the tests of the agent share: its figures, and tasks for it to decide about.

# start_rivals [WORKLOAD]
start_rivals() {
    rt-app "${1:-/tmp/rivals.json}" >/tmp/rt-app.txt 2>&1 &
    rivals=$!
}
stop_rivals() {
    kill "$rivals"
    wait "$rivals" || true
}

# watch SECONDS: the figures of so many seconds, in two halves, however long it takes to begin.
watch() {
    local figures
    exec {figures}< <(exec timeout -s INT $(($1 * 2 + 20)) scx_temponet monitor --json --interval "$(($1 / 2))")
    sed -n '2p; 3 { p; q }' <&"$figures"
    kill -INT $! 2>/dev/null || true
    exec {figures}<&-
}

# watch_calmly SECONDS: and once more, where something had to be put right; up to three times,
# where no decision was in time. A host that holds the guest up may do so for longer than either
# can stand.
watch_calmly() {
    local seen repairs=0
    for _ in 1 2 3 4; do
        seen=$(watch "$1")
        if (($(total repaired <<<"$seen") > 0)); then
            repairs=$((repairs + 1))
            ((repairs < 2)) || break
        elif (($(total decision <<<"$seen") > 0)); then
            break
        fi
    done
    printf '%s\n' "$seen"
}

# values NAME: all of these figures. Where there is none nothing is said, and no assertion holds.
values() { grep -o "\"$1\":[0-9.]*" | cut -d: -f2; }
total() { values "$1" | awk '{ sum += $1 } END { if (NR) print sum + 0 }'; }
first() { values "$1" | head -n 1; }
last() { values "$1" | tail -n 1; }

# What runs the network here: ONNX Runtime where the guest has it.
expected_backend() { if [[ -e /usr/lib/libonnxruntime.so ]]; then echo ort; else echo native; fi; }
