#!/usr/bin/env bash
# Users who mean ill, beside an honest user with declared tasks and a third one with a hog.
#
#   tests/vm/adversary.sh [OPTION]... [ATTACK]...
#
#   --kernel V     only this one; may be given again (default: oldest and newest)
#   --program P    the scx_temponet to test (default: the release build)
#   --cpus N       CPUs of the guest (default: 2)
#   --seconds N    how long each attack lasts (default: 6)
#   --short        only five attacks that need few turns of the daemon: a minute of guest time
#   --out DIR      where the guests' files go (default: target/adversary): DIR/KERNEL
#
# Attacks (default: all):
#   nothing        none, to compare with
#   leeway         tasks of a sixteenth of a CPU that run twice what they declared
#   before-end     work for all but the end of a budget, a moment of sleep, and again
#   yield          a tenth of a budget, sched_yield, and again
#   split          240 threads that declare a thousandth of a CPU each, and use half of one
#   fork           declared tasks that have children work for them
#   stuck          declared tasks that wait for vfork(), with siblings that compute
#   exec           declared tasks that execute themselves again and again, from other threads
#   set-uid        declared tasks that execute a set-uid program
#   redeclare      a new declaration whenever a budget is used up
#   names          64 threads with the name of a rule that is for another user
#   cgroups        16 hogs in a cgroup with the name of a rule that is for another user
#   subordinate    20 subordinate ids of one user who declare a tenth of a CPU each
#   container      requests from other pid and user namespaces
#   foreign        requests about tasks of other users, of root and of the daemon
#   masks          declared tasks that change their set of CPUs with every job
#   pile           declared tasks that are all confined to one CPU afterwards
#   wake-ups       120 tasks per CPU that declare next to nothing and wake up 200 times a second
#   many           15 users with 256 declared tasks each, which wake up together
#   forks          processes that fork without end
#   connects       200 threads that connect again and again
#   silence        10 users with 40 connections each that say nothing
#   requests       16 threads that ask for anything as fast as they can
#   churn          processes that declare and end at once
#   all            most of these at once, by several users
#
# One guest per kernel plays all attacks under one load of the scheduler. Its time counts
# instructions, so that figures do not depend on the host. Status 0: no attack succeeds; 1: one
# does; 2: bad arguments.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
. "$REPO/tests/vm/stress/host.sh"

kernels=() wanted=() short=() cpus=2 seconds=6 out=$REPO/target/adversary
program=$REPO/target/release/scx_temponet

parse_arguments() {
    local option
    while (($#)); do
        option=$1
        shift
        case $option in
            -h | --help) print_manual; exit 0 ;;
            --short) short=(--short); continue ;;
            --kernel | --program | --cpus | --seconds | --out) ;;
            -*) usage_error "unknown option: $option" ;;
            *) wanted+=("$option"); continue ;;
        esac
        (($#)) || usage_error "$option wants a value"
        case $option in
            --kernel) kernels+=("$1") ;;
            --cpus | --seconds)
                [[ $1 =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "$option: not a number: $1"
                printf -v "${option#--}" %s "$1"
                ;;
            --program | --out) printf -v "${option#--}" %s "$1" ;;
        esac
        shift
    done
    # shellcheck disable=SC2153
    ((${#kernels[@]})) || kernels=("${KERNELS[0]}" "${KERNELS[-1]}")
    [[ -x $program ]] || die "no $program: build it first (cargo build --release)"
}

# play KERNEL: its guest, and what it says as it goes.
play() {
    local folder=$out/$1 status=0
    rm -rf "$folder"
    mkdir -p "$folder"
    "$REPO/scripts/vm" --no-fma --mode icount --cpus "$cpus" --mem 2G --kernel "$1" --program "$program" \
        --timeout $((600 + ${#attacks[@]} * (seconds + 10) * 20)) --console "$folder/console" --out "$folder" \
        --add "$helpers/attacks:/usr/bin/attacks" --add "$REPO/tests/vm/attacks/in_guest.sh:/vm/attacks" \
        -- bash /vm/attacks "$seconds" "${attacks[@]}" 2>&1 | sed -u "s/^/$1: /" >&2 || status=$?
    ((status == 0)) || say "the guest of $1 ended with status $status"
}

parse_arguments "$@"
pack_helpers attacks
list=$("$helpers/attacks" list "${short[@]}" "${wanted[@]}" 2>&1) || usage_error "$(sed -n '1s/^error: //p' <<<"$list")"
mapfile -t attacks <<<"$list"
status=0
for kernel in "${kernels[@]}"; do
    play "$kernel"
    printf '== %s, %s CPUs\n' "$kernel" "$cpus"
    "$helpers/attacks" report "$out/$kernel" "${attacks[@]}" || status=1
done
exit $status
