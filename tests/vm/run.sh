#!/usr/bin/env bash
# Runs the tests of tests/vm/guest in a guest, one boot per kernel, and another for those
# that say `#: mode icount`: their figures would depend on the host.
#
#   tests/vm/run.sh [--kernel V]... [--topology T] [--nodes N] [--program P] [--ort] [--without T]... [TEST]...
#
#   --kernel V     only this one (default: every kernel we promise)
#   --topology T   as scripts/vm takes it, e.g. sockets=2,cores=2,threads=2
#   --nodes N      NUMA nodes, as scripts/vm takes it (default: 1)
#   --program P    the scx_temponet to test (default: the release build)
#   --ort          with ONNX Runtime in the guest; the built-in backend is tested without
#   --without T    all but this one; may be given again
#   TEST           only these, e.g. load
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

kernels=() without=() topology=2 nodes=1 program=$REPO/target/release/scx_temponet
files=(--add "$REPO/tests/vm/in_guest.sh:/vm/in_guest" --add "$REPO/models/temponet.onnx:/vm/model.onnx")
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --topology | --nodes | --program | --without) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernels+=("$2"); shift 2 ;;
        --topology) topology=$2; shift 2 ;;
        --nodes) nodes=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --without) without+=("$2"); shift 2 ;;
        --ort) mapfile -t -O "${#files[@]}" files < <(onnxruntime_in_guest); shift ;;
        -*) usage_error "unknown option: $1" ;;
        *) break ;;
    esac
done
((${#kernels[@]})) || kernels=("${KERNELS[@]}")
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"

# Where this machine is a guest itself, its host may keep the CPUs from it; a guest of
# ours then measures that. What fails meanwhile is tried again in a calmer moment, or, where
# the test says `#: again icount`, at once and for good, by a clock that the host cannot disturb.
ATTEMPTS=3
DISTURBING=5 # percent of the CPU time that was wanted

says() { grep -qsx "#: $2" "$REPO/tests/vm/guest/$1.sh"; }
mode_of() { if says "$1" 'mode icount'; then echo icount; else echo fast; fi; }
again_in() { if says "$1" 'again icount'; then echo icount; else mode_of "$1"; fi; }

# in_guest KERNEL MODE TEST...: shows verdicts as they come, and leaves verdict[TEST] and
# stolen[TEST] (percent); the guest's status.
declare -A verdict stolen
in_guest() {
    local kernel=$1 mode=$2 line status=0 before test limit
    shift 2
    limit=$((120 + 200 * $#))
    if [[ $mode == icount ]]; then limit=$((limit * 4)); fi
    verdict=() stolen=()
    before=$(cpu_times)
    while IFS= read -r line; do
        case $line in
            PASS* | FAIL* | SKIP*)
                test=$(awk '{ print $2 }' <<<"$line")
                verdict[$test]=${line%% *}
                if [[ $line == *'(the kernel complained'* ]]; then verdict[$test]=COMPLAINED; fi
                stolen[$test]=$(stolen_since "$before")
                before=$(cpu_times)
                ;;
            'vm-status '*) status=${line#* }; continue ;;
        esac
        printf '%s\n' "$line"
    done < <(
        "$REPO/scripts/vm" --kernel "$kernel" --topology "$topology" --nodes "$nodes" --mode "$mode" --program "$program" \
            --no-fma --timeout "$limit" "${files[@]}" -- /bin/bash /vm/in_guest "$@" && status=0 || status=$?
        printf 'vm-status %s\n' "$status"
    )
    for test; do [[ -n ${stolen[$test]:-} ]] || stolen[$test]=$(stolen_since "$before"); done
    return "$status"
}

# may_be_the_host TEST MODE STATUS: that it failed. A panic (123), or a complaint of the
# kernel, is nobody's fault but ours.
may_be_the_host() {
    if [[ $2 == icount || $3 == 123 || ${verdict[$1]:-} == COMPLAINED ]]; then return 1; fi
    (($3 == 122 || stolen[$1] > DISTURBING))
}

# on_kernel KERNEL MODE ATTEMPT TEST...: with what has to be tried again.
passed=0 failed=0 skipped=0
on_kernel() {
    local kernel=$1 mode=$2 attempt=$3 status=0 bad=0 test why
    local -A again=()
    shift 3
    (($#)) || return 0
    in_guest "$kernel" "$mode" "$@" || status=$?
    for test; do
        case ${verdict[$test]:-none} in
            PASS) passed=$((passed + 1)); continue ;;
            SKIP) skipped=$((skipped + 1)); continue ;;
        esac
        bad=$((bad + 1))
        if ((attempt < ATTEMPTS)) && may_be_the_host "$test" "$mode" "$status"; then
            why="the host kept ${stolen[$test]} % of the CPU"
            ((status != 122)) || why="that was the emulator"
            printf '== kernel %s, once more in mode %s, as %s: %s\n' "$kernel" "$(again_in "$test")" "$why" "$test"
            again[$(again_in "$test")]+=" $test"
        else
            failed=$((failed + 1))
            if [[ -z ${verdict[$test]:-} ]]; then printf 'FAIL  %s  (the guest ended before it, status %s)\n' "$test" "$status"; fi
        fi
    done
    # All verdicts were good, but the guest itself was not, and not through the emulator.
    if ((status && status != 122 && bad == 0)); then
        printf 'FAIL  the guest itself (status %s)\n' "$status"
        failed=$((failed + 1))
    fi
    # shellcheck disable=SC2086
    on_kernel "$kernel" icount $((attempt + 1)) ${again[icount]:-}
    if [[ -n ${again[fast]:-} ]]; then
        await_calm
        # shellcheck disable=SC2086
        on_kernel "$kernel" fast $((attempt + 1)) ${again[fast]}
    fi
}

tests=("$@")
if ((${#tests[@]} == 0)); then
    for file in "$REPO"/tests/vm/guest/*.sh; do
        test=$(basename "$file" .sh)
        [[ $test == lib* || " ${without[*]} " == *" $test "* ]] || tests+=("$test")
    done
fi
for kernel in "${kernels[@]}"; do
    printf '== kernel %s\n' "$kernel"
    for mode in fast icount; do
        chosen=()
        for test in "${tests[@]}"; do
            if [[ $(mode_of "$test") == "$mode" ]]; then chosen+=("$test"); fi
        done
        on_kernel "$kernel" "$mode" 1 "${chosen[@]}"
    done
done
printf '%d passed, %d failed' "$passed" "$failed"
((skipped)) && printf ', %d skipped' "$skipped"
printf '\n'
((failed == 0 && passed > 0))
