#!/bin/bash
# Runs in the guest, for tests/walk.sh: commands of the README, each with what it prints. A
# scheduler that one of them loads stays until another is to be loaded, as with Ctrl-C in its
# terminal.
SCX=/sys/kernel/sched_ext
loaded=''

fail() { printf 'failed: %s\n' "$*"; exit 1; }

load() {
    local i
    unload
    bash -c "exec $1" >/tmp/loaded.txt 2>&1 &
    loaded=$!
    for ((i = 0; i < 1800; i++)); do
        [[ $(cat $SCX/state) == enabled || ! -d /proc/$loaded ]] && break
        sleep 0.1
    done
    sleep 4
    cat /tmp/loaded.txt
    [[ $(cat $SCX/state) == enabled ]] || fail "not loaded: $1"
}

unload() {
    local status=0
    [[ -n $loaded ]] || return 0
    echo "(Ctrl-C)"
    kill -INT "$loaded"
    wait "$loaded" || status=$?
    loaded=''
    ((status == 0)) || fail "the scheduler ended with status $status"
    [[ $(cat $SCX/state) == disabled ]] || fail "the kernel's own scheduler is not back"
}

for line; do
    printf '$ %s\n' "$line"
    command=${line#sudo }
    command=${command/#scripts\/run.sh/scx_temponet}
    case $command in
        scx_temponet | 'scx_temponet --'*) load "$command"; continue ;;
        *' monitor') command+=' --once' ;;
        *' --live'*) unload ;;
    esac
    bash -c "$command" || fail "status $?: $command"
done
unload
