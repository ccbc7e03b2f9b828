#!/bin/bash
# The agent in a cgroup with hardly more memory than it has, while it is kept busy.
. "$(dirname "$0")/../lib.sh"
box=$(make_cgroup agent-box)
begin
echo $((rss_before * 1024 + 4 * 1024 * 1024)) >"$box/memory.max"
echo "$scheduler_pid" >"$box/cgroup.procs"
stress-ng --quiet --fork 2 --switch 2 --cpu "$CPUS" &
load=$!
adversary hint "$LOAD_S" $$ >/dev/null
kill $load
reap $load
assert_eq "$(sed -n 's/^oom_kill //p' "$box/memory.events")" 0 "times that the kernel killed the agent for memory"
echo "$scheduler_pid" >/sys/fs/cgroup/cgroup.procs
rmdir "$box"
finish
