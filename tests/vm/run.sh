#!/usr/bin/env bash
# Runs the tests of tests/vm/guest in a guest, one boot per kernel.
#
#   tests/vm/run.sh [--kernel V]... [--topology T] [--program P] [TEST]...
#
#   --kernel V     only this one (default: every kernel we promise)
#   --topology T   as scripts/vm takes it, e.g. sockets=2,cores=2,threads=2
#   --program P    the scx_temponet to test (default: the release build)
#   TEST           only these, e.g. load
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

kernels=() topology=2 program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --topology | --program) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernels+=("$2"); shift 2 ;;
        --topology) topology=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        -*) usage_error "unknown option: $1" ;;
        *) break ;;
    esac
done
((${#kernels[@]})) || kernels=("${KERNELS[@]}")
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"

passed=0 failed=0 skipped=0
# in_guest KERNEL TEST...: counts and shows verdicts as they come; the guest's status.
in_guest() {
    local kernel=$1 line status=0
    shift
    while IFS= read -r line; do
        case $line in
            PASS*) passed=$((passed + 1)) ;;
            FAIL*) failed=$((failed + 1)) ;;
            SKIP*) skipped=$((skipped + 1)) ;;
            'vm-status '*) status=${line#* }; continue ;;
        esac
        printf '%s\n' "$line"
    done < <(
        "$REPO/scripts/vm" --kernel "$kernel" --topology "$topology" --program "$program" --no-fma --timeout 900 \
            --add "$REPO/tests/vm/in_guest.sh:/vm/in_guest" -- /bin/bash /vm/in_guest "$@" && status=0 || status=$?
        printf 'vm-status %s\n' "$status"
    )
    return "$status"
}

for kernel in "${kernels[@]}"; do
    printf '== kernel %s\n' "$kernel"
    before=("$passed" "$failed" "$skipped") status=0
    in_guest "$kernel" "$@" || status=$?
    if ((status == 122)); then
        printf '== kernel %s, once more: that was the emulator\n' "$kernel"
        passed=${before[0]} failed=${before[1]} skipped=${before[2]} status=0
        in_guest "$kernel" "$@" || status=$?
    fi
    if ((status)); then
        printf 'FAIL  the guest itself (status %s)\n' "$status"
        failed=$((failed + 1))
    fi
done
printf '%d passed, %d failed' "$passed" "$failed"
((skipped)) && printf ', %d skipped' "$skipped"
printf '\n'
((failed == 0 && passed > 0))
