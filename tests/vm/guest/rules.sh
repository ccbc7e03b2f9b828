#!/bin/bash
# The rules file: applied by name and by cgroup, and refused with its line.
#: again icount
. "$(dirname "$0")/lib.sh"

cat >/tmp/bad.toml <<'TOML'
[[rule]]
comm = "audio*"
runtime = "5ms"
deadline = "4ms"
period = "10ms"
TOML
status=0
said=$(scx_temponet --rules /tmp/bad.toml 2>&1) || status=$?
assert_eq "$status" 2 "status with a bad rule"
assert_match "$said" 'bad.toml:[0-9]+' "where the bad rule is"
status=0
scx_temponet --rules /tmp/missing.toml 2>/dev/null || status=$?
assert_eq "$status" 2 "status with no rules file"

cat >/tmp/rules.toml <<'TOML'
[[rule]]
comm = "beat*"
runtime = "5ms"
deadline = "20ms"
period = "20ms"

[[rule]]
comm = "late*"
user = 1001
class = "background"

[[rule]]
cgroup = "quiet.slice"
class = "background"
TOML
start_scheduler --stats 1 --rules /tmp/rules.toml
cp /bin/bash /tmp/beat-1
/tmp/beat-1 -c 'for ((i = 0; i < 100; i++)); do sleep 0.02; done'
sleep 2
assert_ge "$(figure .classes.declared.met)" 20 "jobs of the task that the rule names"

mkdir -p /sys/fs/cgroup/quiet.slice
before=$(figure .classes.background.runs)
bash -c 'echo $$ >/sys/fs/cgroup/quiet.slice/cgroup.procs; for ((i = 0; i < 100; i++)); do sleep 0.01; done'
sleep 2
assert_ge "$(figure .classes.background.runs)" $((before + 50)) "runs in background of the task whose cgroup the rule names"
rmdir /sys/fs/cgroup/quiet.slice

# The same name, of the user that the rule is for, of another, and of one who is both in part.
cp /bin/bash /tmp/late-1
in_background() {
    local before
    before=$(figure .classes.background.runs)
    # With -p bash keeps the ids that it is given.
    "$@" /tmp/late-1 -p -c 'for ((i = 0; i < 100; i++)); do sleep 0.01; done'
    sleep 2
    echo $(($(figure .classes.background.runs) - before))
}
assert_ge "$(in_background setpriv --reuid=1001 --clear-groups)" 50 "runs in background of the user that the rule names"
assert_le "$(in_background setpriv --reuid=1002 --clear-groups)" 40 "runs in background of another user"
assert_le "$(in_background setpriv --ruid=1001 --euid=1002 --clear-groups)" 40 "runs in background of who is this user in part"
stop_scheduler
