#!/usr/bin/env bash
# Runs the tests of tests/vm/guest in a guest, one boot per kernel, and another for those
# that say `#: mode icount`: their figures would depend on the host.
#
#   tests/vm/run.sh [--kernel V]... [--topology T] [--nodes N] [--program P] [--ort] [--mode M]
#                   [--without T]... [--failed FILE] [TEST]...
#
#   --kernel V     only this one (default: every kernel we promise)
#   --topology T   as scripts/vm takes it, e.g. sockets=2,cores=2,threads=2
#   --nodes N      NUMA nodes, as scripts/vm takes it (default: 1)
#   --program P    the scx_temponet to test (default: the release build)
#   --ort          with ONNX Runtime in the guest; the built-in backend is tested without
#   --mode M       only those of this mode: icount, or fast (which is all others)
#   --without T    all but this one; may be given again
#   --failed FILE  adds the tests that failed to this file, a line each
#   TEST           only these, e.g. load
#
# A test that fails, or takes its guest with it, does not keep the others from being run.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

kernels=() modes=(fast icount) without=() red=/dev/null topology=2 nodes=1 program=$REPO/target/release/scx_temponet
files=(--add "$REPO/tests/vm/in_guest.sh:/vm/in_guest" --add "$REPO/models/temponet.onnx:/vm/model.onnx")
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --topology | --nodes | --program | --mode | --without | --failed) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernels+=("$2"); shift 2 ;;
        --topology) topology=$2; shift 2 ;;
        --nodes) nodes=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --mode)
            [[ $2 == fast || $2 == icount ]] || usage_error "--mode: neither fast nor icount: $2"
            modes=("$2")
            shift 2
            ;;
        --without) without+=("$2"); shift 2 ;;
        --failed) red=$2; shift 2 ;;
        --ort) mapfile -t -O "${#files[@]}" files < <(onnxruntime_in_guest); shift ;;
        -*) usage_error "unknown option: $1" ;;
        *) break ;;
    esac
done
((${#kernels[@]})) || kernels=("${KERNELS[@]}")
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"

# The CPUs of this machine may be wanted by others: by its own host, where it is a guest itself,
# and by other work here. A guest of ours then measures that. A wait that is too long by the
# guest's clock (LATE) is judged in the time that the guest had. What fails otherwise while
# much was kept from the guest is tried again, or, where the test says `#: again icount`, at
# once and for good, by a clock that the host cannot disturb.
ATTEMPTS=3
DISTURBING=5 # percent of the CPU time that was wanted
BARREN=2     # guests in a row that end before their first test does

times=$(mktemp)
trap 'rm -f "$times"' EXIT

says() { grep -qsx "#: $2" "$REPO/tests/vm/guest/$1.sh"; }
mode_of() { if says "$1" 'mode icount'; then echo icount; else echo fast; fi; }
again_in() { if says "$1" 'again icount'; then echo icount; else mode_of "$1"; fi; }

# had SPAN: of so many ms, those that the guest had since its last verdict, where it had least.
had() { echo $(($(time_had "$times" "$since" "$(now_ms)" "$1") * (100 - $(stolen_since "$before")) / 100)); }

# judge_late TEST WAITED BOUND TOOK...: as a line with a verdict.
judge_late() {
    local verdict=FAIL had=$2 why="waited $2 ms"
    # In mode icount the guest has all the time that its clock counts.
    if [[ $mode == fast ]]; then
        had=$(had "$2")
        why+=", had at least $had of them"
    fi
    if ((had <= $3)); then verdict=PASS; fi
    printf '%s  %s  %s (%s; the bound is %s)\n' "$verdict" "$1" "${*:4}" "$why" "$3"
}

# note_times TEST: what was kept from it, and what of that the host of this machine took.
note_times() {
    local took=$(($(now_ms) - since))
    stolen[$1]=$(stolen_since "$before")
    kept[$1]=$((100 - 100 * $(had "$took") / (took > 0 ? took : 1)))
    before=$(cpu_times) since=$(now_ms)
}

# in_guest KERNEL MODE TEST...: shows verdicts as they come, and leaves verdict[TEST], and
# kept[TEST] and stolen[TEST] (percent); the guest's status.
declare -A verdict kept stolen
in_guest() {
    local kernel=$1 mode=$2 line status=0 before since test limit
    shift 2
    limit=$((120 + 200 * $#))
    if [[ $mode == icount ]]; then limit=$((limit * 4)); fi
    verdict=() kept=() stolen=()
    : >"$times"
    before=$(cpu_times) since=$(now_ms)
    while IFS= read -r line; do
        # shellcheck disable=SC2086
        if [[ $line == LATE* ]]; then line=$(judge_late ${line#LATE}); fi
        case $line in
            PASS* | FAIL* | SKIP*)
                test=$(awk '{ print $2 }' <<<"$line")
                verdict[$test]=${line%% *}
                if [[ $line == *'(the kernel complained'* ]]; then verdict[$test]=COMPLAINED; fi
                note_times "$test"
                ;;
            'vm-status '*) status=${line#* }; continue ;;
        esac
        printf '%s\n' "$line"
    done < <(
        "$REPO/scripts/vm" --kernel "$kernel" --topology "$topology" --nodes "$nodes" --mode "$mode" --program "$program" \
            --no-fma --timeout "$limit" --times "$times" "${files[@]}" -- /bin/bash /vm/in_guest "$@" && status=0 || status=$?
        printf 'vm-status %s\n' "$status"
    )
    for test; do
        if [[ -z ${verdict[$test]:-} ]]; then
            note_times "$test"
            break
        fi
    done
    return "$status"
}

# may_be_the_host TEST MODE STATUS: that it failed. A panic (123), or a complaint of the
# kernel, is nobody's fault but ours.
may_be_the_host() {
    if [[ $2 == icount || $3 == 123 || ${verdict[$1]:-} == COMPLAINED ]]; then return 1; fi
    (($3 == 122 || kept[$1] > DISTURBING))
}

# has_failed KERNEL TEST
has_failed() {
    failed=$((failed + 1))
    printf '%s on %s\n' "$2" "$1" >>"$red"
}

# on_kernel KERNEL MODE ATTEMPT TEST...: with what has to be tried again.
passed=0 failed=0 skipped=0 barren=0
on_kernel() {
    local kernel=$1 mode=$2 attempt=$3 status=0 bad=0 calm=1 unfinished='' test why
    local -A again=()
    local rest=()
    shift 3
    (($#)) || return 0
    in_guest "$kernel" "$mode" "$@" || status=$?
    if ((${#verdict[@]})); then barren=0; else barren=$((barren + 1)); fi
    for test; do
        case ${verdict[$test]:-none} in
            PASS) passed=$((passed + 1)); continue ;;
            SKIP) skipped=$((skipped + 1)); continue ;;
            none)
                # The guest ended in the first of these; the others had no turn.
                if [[ -n $unfinished ]]; then
                    rest+=("$test")
                    continue
                fi
                unfinished=$test
                ;;
        esac
        bad=$((bad + 1))
        if ((attempt < ATTEMPTS)) && may_be_the_host "$test" "$mode" "$status"; then
            why="others had ${kept[$test]} % of the CPU"
            ((status != 122)) || why="that was the emulator"
            ((stolen[$test] <= DISTURBING)) || calm=0
            printf '== kernel %s, once more in mode %s, as %s: %s\n' "$kernel" "$(again_in "$test")" "$why" "$test"
            again[$(again_in "$test")]+=" $test"
        else
            has_failed "$kernel" "$test"
            if [[ $test == "$unfinished" ]]; then printf 'FAIL  %s  (the guest ended in it, status %s)\n' "$test" "$status"; fi
        fi
    done
    # All verdicts were good, but the guest itself was not, and not through the emulator.
    if ((status && status != 122 && bad == 0)); then
        printf 'FAIL  the guest itself (status %s)\n' "$status"
        has_failed "$kernel" "the guest itself"
    fi
    if ((barren >= BARREN)); then
        for test in "${rest[@]}"; do
            has_failed "$kernel" "$test"
            printf 'FAIL  %s  (%d guests in a row ended before any test did)\n' "$test" "$barren"
        done
        rest=()
    fi
    on_kernel "$kernel" "$mode" "$attempt" "${rest[@]}"
    # shellcheck disable=SC2086
    on_kernel "$kernel" icount $((attempt + 1)) ${again[icount]:-}
    if [[ -n ${again[fast]:-} ]]; then
        # Other work on this machine may have no end, so it is not waited for.
        ((calm)) || await_calm
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
    if ! "$REPO/scripts/kernel.sh" "$kernel" >/dev/null; then
        has_failed "$kernel" "all tests (no such kernel here)"
        continue
    fi
    for mode in "${modes[@]}"; do
        chosen=() barren=0
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
