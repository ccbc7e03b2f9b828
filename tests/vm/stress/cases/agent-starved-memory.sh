#!/bin/bash
# The agent in a cgroup without the memory it wants, from its start and while it is kept busy.
#: timeout 600
. "$(dirname "$0")/../lib.sh"
box=$(make_cgroup agent-box)
# From its start: what is moved there later leaves its pages with others.
cat >/tmp/boxed <<EOF
#!/bin/bash
echo \$\$ >$box/cgroup.procs
exec scx_temponet "\$@"
EOF
chmod +x /tmp/boxed
times_hit() { sed -n 's/^max //p' "$box/memory.events"; }
NEEDS=$((32 << 20))

# With too little to start: it loads or it leaves, and never hangs.
for percent in 10 25 50 75; do
    echo $((NEEDS * percent / 100)) >"$box/memory.max"
    before=$(times_hit)
    status=0
    said=$(timeout -s INT -k 10 20 /tmp/boxed --policy "$POLICY" 2>&1) || status=$?
    [[ $said != *panicked* ]] || fail "a panic with $percent % of its memory: $said"
    wait_for 20 scx_is disabled || fail "left loaded with $percent % of its memory"
    say "$percent % of its memory: status $status, limit hit $(($(times_hit) - before)) times"
    ((percent > 25)) || assert_ge "$(times_hit)" $((before + 1)) "times that the limit was hit"
done
echo max >"$box/memory.max"

# press SECONDS: it reads its model again and serves clients, for which it wants memory.
press() {
    local until=$((SECONDS + $1))
    while ((SECONDS < until)) && ! scheduler_is_gone; do
        kill -HUP "$scheduler_pid"
        adversary hint 1 $$ >/dev/null
        adversary stats 1 >/dev/null
    done
}

# Without memory it may go, as long as the kernel takes over.
has_left() {
    local status=0
    wait_for 10 scx_is disabled || fail "still $(scx_state) though the agent is gone"
    wait "$scheduler_pid" || status=$?
    scheduler_pid=''
    say "the agent went with status $status"
    ((status == 137)) || [[ -s $SCHEDULER_LOG ]] || fail "the agent went without a word"
}

# After the scheduler: beside this it takes minutes to load.
start_load() {
    stress-ng --quiet --fork 2 --switch 2 --cpu "$CPUS" &
    load=$!
}
times_killed() { sed -n 's/^oom_kill //p' "$box/memory.events"; }

# With room for nothing more, while it decides.
expect_rivals
SCHEDULER=/tmp/boxed start_scheduler --policy "$POLICY" "${OPTIONS[@]}"
start_rivals
start_load
sleep 2
before=$(times_hit)
echo $(($(cat "$box/memory.current") + (64 << 10))) >"$box/memory.max"
press "$LOAD_S"
assert_ge "$(times_hit)" $((before + 1)) "times that the limit was hit"
say "limit hit $(($(times_hit) - before)) times"
if scheduler_is_gone; then has_left; else stop_scheduler; fi
dismiss $load
stop_rivals

# With room for its work, it serves on.
echo $NEEDS >"$box/memory.max"
killed=$(times_killed)
SCHEDULER=/tmp/boxed begin
start_rivals
start_load
adversary hint "$LOAD_S" $$ >/dev/null
assert_eq "$(times_killed)" "$killed" "times that the kernel killed the agent for memory"
dismiss $load
echo max >"$box/memory.max"
finish
