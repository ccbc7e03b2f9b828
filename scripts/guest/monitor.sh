# shellcheck shell=bash
# Runs in the guest: what scripts/monitor-picture.sh records. The screen of every second is
# a file in /out/frames; /out/still has the number of the one for a picture that stands still.
#
#   monitor.sh COLUMNS ROWS [sizes]     sizes: the screen at other sizes, and its keys, as well
. /vm/measure

columns=$1 rows=$2 sizes=${3:-}
screen() { tmux -u "$@"; }
show() { screen capture-pane -p "$@" -t monitor; }

# thread NAME WORK PERIOD: of a workload, in microseconds.
thread() {
    printf '"%s": { "cpus": [0], "run": %d, "timer": { "ref": "unique", "period": %d, "mode": "absolute" } }' "$1" "$2" "$3"
}
# workload SECONDS THREADS
workload() {
    printf '{ "global": { "duration": %d, "calibration": %d, "lock_pages": false, "logdir": "/tmp" }, "tasks": { %s } }\n' \
        "$1" "$calibration" "$2"
}

calibrate
cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "motor*"
runtime = "13.4ms"
period = "40ms"
criticality = 1

[[rule]]
comm = "camera*"
runtime = "20.6ms"
period = "60ms"

[[rule]]
comm = "planner*"
runtime = "25.8ms"
period = "100ms"

[[rule]]
comm = "mapper*"
runtime = "30.9ms"
period = "120ms"
TOML
workload 20 "$(thread motor 13000 40000), $(thread camera 20000 60000), $(thread planner 25000 100000)" >/tmp/three.json
workload 8 "$(thread mapper 30000 120000)" >/tmp/fourth.json

start_scheduler --rules /tmp/rules.toml
mkdir -p /out/frames
screen new-session -d -s monitor -x "$columns" -y "$rows" 'scx_temponet monitor --interval 1s' \; set status off
sleep 3
begin=$(now)
for ((second = 0; second < 27; second++)); do
    case $second in
        2) rt-app /tmp/three.json >/tmp/three.log 2>&1 & ;;
        9) rt-app /tmp/fourth.json >/tmp/fourth.log 2>&1 & ;;
        14) echo $second >/out/still ;;
    esac
    sleep_until "$begin" $((second + 1))
    show -e >"/out/frames/$(printf '%03d' $second)"
done

# key NAME KEY...: what the screen shows after them.
key() {
    local name=$1
    shift
    screen send-keys -t monitor "$@"
    sleep 2
    show >"/out/key-$name"
}

# The sizes that the screen is made for, under load, and its keys.
show_sizes() {
    local size
    rt-app /tmp/three.json >/tmp/three.log 2>&1 &
    rt-app /tmp/fourth.json >/tmp/fourth.log 2>&1 &
    sleep 5
    for size in 70x20 100x30 200x60; do
        screen resize-window -t monitor -x "${size%x*}" -y "${size#*x}"
        sleep 2
        show >"/out/$size"
    done
    screen resize-window -t monitor -x 100 -y 30
    sleep 2
    key help '?'
    key help-again '?'
    key sorted s
    key filter / m o t Enter
    key filter-gone / Escape
    key paused p
}

if [[ -n $sizes ]]; then show_sizes; fi
screen send-keys -t monitor q
sleep 2
if screen has-session -t monitor 2>/dev/null; then fail "q did not end the monitor"; fi
stop_scheduler
