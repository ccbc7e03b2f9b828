#!/bin/bash
# Hogs share by weight: nice levels and cgroup weights mean what people think.
#: mode icount
. "$(dirname "$0")/lib.sh"

start_scheduler
spin='while :; do :; done'
cpu_time() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# shares PID PID: CPU time of the first over that of the second, in 4 s.
ratio() {
    local a b
    sleep 1
    a=$(cpu_time "$1") b=$(cpu_time "$2")
    sleep 4
    awk -v a=$(($(cpu_time "$1") - a)) -v b=$(($(cpu_time "$2") - b)) 'BEGIN { print a / (b ? b : 1) }'
}

taskset -c 0 nice -n 0 bash -c "$spin" & one=$!
taskset -c 0 nice -n 0 bash -c "$spin" & two=$!
same=$(ratio $one $two)
kill $one $two
assert_ge "$same" 0.75 "equal hogs"
assert_le "$same" 1.33 "equal hogs"

taskset -c 0 nice -n 0 bash -c "$spin" & one=$!
taskset -c 0 nice -n 5 bash -c "$spin" & two=$!
nice5=$(ratio $one $two) # the kernel's table says 3.05
kill $one $two
assert_ge "$nice5" 2.2 "nice 0 against nice 5"
assert_le "$nice5" 4.2 "nice 0 against nice 5"

if [[ -e /sys/fs/cgroup/cgroup.controllers ]] && grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    mkdir -p /sys/fs/cgroup/heavy /sys/fs/cgroup/light
    echo 300 >/sys/fs/cgroup/heavy/cpu.weight
    taskset -c 0 bash -c "echo \$\$ >/sys/fs/cgroup/heavy/cgroup.procs; $spin" & one=$!
    taskset -c 0 bash -c "echo \$\$ >/sys/fs/cgroup/light/cgroup.procs; $spin" & two=$!
    weight=$(ratio $one $two)
    taskset -c 0 bash -c "echo \$\$ >/sys/fs/cgroup/light/cgroup.procs; $spin" & three=$!
    shared=$(ratio $one $two)
    kill $one $two $three
    wait $one $two $three || true
    rmdir /sys/fs/cgroup/heavy /sys/fs/cgroup/light
    assert_ge "$weight" 2.2 "weight 300 against 100"
    assert_le "$weight" 4.2 "weight 300 against 100"
    assert_ge "$shared" 4.3 "weight 300 against half of 100"
    assert_le "$shared" 8.0 "weight 300 against half of 100"
fi
stop_scheduler
