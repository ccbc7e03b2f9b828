#!/bin/bash
# Tasks move between cgroups whose weights and limits change meanwhile; cgroups come and go.
. "$(dirname "$0")/../lib.sh"
for name in a b c; do make_cgroup stress-$name >/dev/null; done
begin
spin $((CPUS * 6))
until=$((SECONDS + LOAD_S))
round=0
while ((SECONDS < until)); do
    round=$((round + 1))
    for pid in "${spinning[@]}"; do
        group=(a b c)
        echo "$pid" >"/sys/fs/cgroup/stress-${group[RANDOM % 3]}/cgroup.procs"
    done
    echo $((1 + RANDOM % 10000)) >/sys/fs/cgroup/stress-a/cpu.weight
    echo 1 >/sys/fs/cgroup/stress-b/cpu.weight
    if [[ -e /sys/fs/cgroup/stress-c/cpu.max ]]; then
        echo "$((1000 + RANDOM)) 100000" >/sys/fs/cgroup/stress-c/cpu.max
        ((round % 2)) || echo max >/sys/fs/cgroup/stress-c/cpu.max
    fi
    deep=/sys/fs/cgroup/stress-a/x/y/z
    mkdir -p $deep
    echo "${spinning[0]}" >$deep/cgroup.procs
    echo "${spinning[0]}" >/sys/fs/cgroup/stress-b/cgroup.procs
    rmdir $deep /sys/fs/cgroup/stress-a/x/y /sys/fs/cgroup/stress-a/x
done
assert_ge $round 3 "rounds"
for pid in "${spinning[@]}"; do assert_ge "$(cpu_ticks "$pid")" 1 "CPU ticks of hog $pid"; done
stop_spinning
rmdir /sys/fs/cgroup/stress-{a,b,c}
finish
