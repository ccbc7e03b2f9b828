# shellcheck shell=bash
# The guest's side of the storm (tests/vm/storm.sh): keeps the scheduler while the director
# (tests/vm/storm) tells the story, and holds it to its promises at the end.
# shellcheck source=lib.sh
. /stress/lib.sh

FOLDER=/tmp/storm
# The director counts them, and watches who is in charge.
LOADS=any
# Declared tasks lose their CPUs, their daemon and their declarations by the story's will.
COMPLIANCE_FLOOR=0
# Who is moved while it waits for the CPU that it was given is dispatched again.
LEAST_RUNS=0.5
printf '[[rule]]\ncomm = "storm-back"\nclass = "background"\n' >/tmp/storm.toml
OPTIONS+=(--rules /tmp/storm.toml)

# What the director wants of us: a scheduler that is killed and comes back. The log of the
# old one is kept.
restart_scheduler() {
    kill -CONT "$scheduler_pid" 2>/dev/null || true
    kill -KILL "$scheduler_pid"
    wait_for 60 scheduler_is_gone || fail "the scheduler outlived SIGKILL"
    wait "$scheduler_pid" || true
    wait_for 60 scx_is disabled || fail "still $(scx_state) after the scheduler was killed"
    cat "$SCHEDULER_LOG" >>/out/scheduler-before.log
    start_scheduler --policy "$POLICY" "${OPTIONS[@]}"
    tell_pid
}

tell_pid() {
    echo "$scheduler_pid" >$FOLDER/daemon.new
    mv $FOLDER/daemon.new $FOLDER/daemon
}

# tell_story [OPTION]...: the director's status.
tell_story() {
    local director order status=0
    storm direct --folder $FOLDER --bound-ms $WAIT_BOUND_MS "$@" &
    director=$!
    while ! is_gone $director; do
        if read -r -t 0.3 order <&4 && [[ $order == restart ]]; then restart_scheduler; fi
    done
    wait $director || status=$?
    return $status
}

# A broken promise is told at once; that somebody waited too long, or that it took long to load
# again, only if the host, which may have kept the guest waiting, cannot explain it.
judge_violation() {
    local waited
    dmesg | tail -n 60
    cp "$SCHEDULER_LOG" /out/scheduler.log
    (check_dmesg) || exit $COMPLAINED
    (($1 == 3 || $1 == 4)) || fail "$(head -n 1 $FOLDER/violation)"
    end_sentinels
    measure_host
    refuse_if_disturbed
    (($1 == 3)) || fail "$(head -n 1 $FOLDER/violation)"
    waited=$(sed -n '1s/.* waited for \([0-9]*\) ms$/\1/p' $FOLDER/violation)
    assert_le "$waited" "$WAIT_BOUND_MS" "ms waited ($(head -n 1 $FOLDER/violation))"
    printf 'disturbed: stalls of %s ms explain that %s\n' "$host_stall_ms" "$(head -n 1 $FOLDER/violation)"
    exit $DISTURBED
}

# The director knows sooner that a load takes too long, and says so.
LOAD_WITHIN_S=300
mkdir $FOLDER
mkfifo $FOLDER/orders
exec 4<>$FOLDER/orders
begin
tell_pid
status=0
# shellcheck disable=SC2086
tell_story $STORY || status=$?
cp $FOLDER/figures /out/storm 2>/dev/null || true
cp $FOLDER/violation /out/violation 2>/dev/null || true
((status != 2)) || fail "the director could not do its work"
if ((status)); then judge_violation $status; fi
finish
