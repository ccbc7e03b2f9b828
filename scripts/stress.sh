#!/usr/bin/env bash
# Does its worst to the scheduler, on real kernels, one guest per case, and checks
# after each that nothing it promises was broken (docs/promises.md).
#
#   scripts/stress.sh [OPTION]...
#
#   --list          the cases, a line each
#   --case NAME     only this one; may be given again (default: all)
#   --kernel V      only this one; may be given again (default: every kernel we
#                   promise)
#   --policy P      what the scheduler is loaded with (default: $POLICY, else temponet)
#   --seconds S     length of a load, where the case does not fix it (default: 20)
#   --cpus N        vCPUs of a guest (default: 2)
#   --mode M        as scripts/vm takes it: fast, turns or icount (default: fast)
#   --jobs N        so many guests at once (default: 1), but for cases that want the host to
#                   themselves, which come last
#   --program P     the scx_temponet to test (default: the release build)
#   --out DIR       where logs and figures go (default: target/stress); DIR/KERNEL/CASE/vm
#                   tells how far a long case is
#   --resume        leave out what DIR says has passed with the same program, tests and
#                   options
#
# Prints a verdict per case and kernel as it comes, and leaves DIR/results.tsv with
# the figures. A case that the host disturbed too much to tell is tried again in a calmer
# moment, and has failed if there is none. Status 0 if nothing failed.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$REPO/tests/vm/stress/host.sh"

CASES=$REPO/tests/vm/stress/cases
HELPERS=(stats_watch sentinel adversary)

kernels=() cases=() policy=${POLICY:-temponet} seconds=20 cpus=2 mode=fast jobs=1
program=$REPO/target/release/scx_temponet out=$REPO/target/stress list='' resume=''

parse_arguments() {
    local option
    while (($#)); do
        option=$1
        shift
        case $option in
            -h | --help) print_manual; exit 0 ;;
            --list) list=1; continue ;;
            --resume) resume=1; continue ;;
            --case | --kernel | --policy | --seconds | --cpus | --mode | --jobs | --program | --out) ;;
            *) usage_error "unknown option: $option" ;;
        esac
        (($#)) || usage_error "$option wants a value"
        case $option in
            --case) [[ -f $CASES/$1.sh ]] || usage_error "no such case: $1"; cases+=("$1") ;;
            --kernel) kernels+=("$1") ;;
            --policy) policy=$1 ;;
            --mode) mode=$1 ;;
            --program) program=$1 ;;
            --out) out=$1 ;;
            --seconds | --cpus | --jobs)
                [[ $1 =~ ^[1-9][0-9]*$ ]] || usage_error "$option: not a number: $1"
                printf -v "${option#--}" %s "$1"
                ;;
        esac
        shift
    done
    ((${#kernels[@]})) || kernels=("${KERNELS[@]}")
    if ((${#cases[@]} == 0)); then mapfile -t cases < <(basename -s .sh "$CASES"/*.sh); fi
}

# The first comment of a case says what it does; `#: NAME VALUE` are options of
# scripts/vm, and `#: alone yes` of this.
about() { sed -n '2{s/^# //;p}' "$CASES/$1.sh"; }
vm_option() { sed -n "s/^#: $2 //p" "$CASES/$1.sh"; }

# What a verdict depends on: program, options, and the test itself.
setting() {
    local test
    test=$(cat "$CASES/$1.sh" "$CASES"/../{lib,in_guest}.sh "$REPO/tests/vm/guest/lib.sh" \
        "$REPO/packaging/scx_temponet.service" "${HELPERS[@]/#/$helpers/}" | sha256sum | cut -c1-16)
    printf '%s %s %s s %s CPUs %s\n' "$program_hash $test" "$policy" "$seconds" "$cpus" "$mode"
}

has_passed() { grep -qsFx "$2" "$1/setting" && grep -qs ^PASS "$1/result"; }

# boot_case KERNEL CASE FOLDER: one guest; its status.
boot_case() {
    local kernel=$1 case=$2 folder=$3 limit own patience option value
    local options=() mode=$mode
    limit=$(vm_option "$case" timeout)
    limit=${limit:-300}
    # A guest that counts instructions may take several seconds for one of its own, and does
    # not survive all that a case may do.
    own=$(vm_option "$case" mode)
    if [[ $mode == icount ]]; then mode=${own:-icount}; fi
    patience=$((limit + 120))
    if [[ $mode == icount ]]; then patience=$((patience * 8)); fi
    for option in mem disk; do
        value=$(vm_option "$case" $option)
        if [[ -n $value ]]; then options+=("--$option" "$value"); fi
    done
    boot "$folder" --kernel "$kernel" --cpus "$cpus" --mode "$mode" --program "$program" \
        --timeout "$patience" "${options[@]}" \
        --add "$REPO/packaging/scx_temponet.service:/stress/scx_temponet.service" \
        -- env POLICY="$policy" LOAD_S="$seconds" bash /stress/in_guest.sh "cases/$case" "$limit"
}

# run_case KERNEL CASE: leaves its files and a row of the results.
run_case() {
    local kernel=$1 case=$2 folder=$out/$1/$2 status=0 started=$SECONDS verdict now
    now=$(setting "$case")
    if [[ -n $resume ]] && has_passed "$folder" "$now"; then
        cat "$folder/verdict"
        return
    fi
    try_guest "$case on $kernel" "$folder" boot_case "$kernel" "$case" "$folder" || status=$?
    echo "$now" >"$folder/setting"
    case $status in
        0) verdict=PASS ;;
        77) verdict=SKIP ;;
        *) verdict=FAIL ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$verdict" "$case" "$kernel" "$policy" $((SECONDS - started)) \
        "$(paste -sd' ' "$folder/figures" 2>/dev/null)" >"$folder/result"
    describe "$verdict" "$status" "$case" "$kernel" $((SECONDS - started)) "$folder" >"$folder/verdict"
    cat "$folder/verdict"
}

# describe VERDICT STATUS CASE KERNEL SECONDS FOLDER
describe() {
    printf '%-5s %-24s %-10s %4s s  %s\n' "$1" "$3" "$4" "$5" "$(short_figures "$6/figures")"
    if (($2 == DISTURBED)); then echo "      disturbed by the host, in three attempts"; fi
    case $1 in
        SKIP) tail -n 1 "$6/log" | sed 's/^/      /' ;;
        FAIL) { tail -n 12 "$6/log" "$6/vm" 2>/dev/null || true; } | sed 's/^/      /' ;;
    esac
}

short_figures() {
    [[ -s $1 ]] || return 0
    awk -F= '{ v[$1] = $2 } END {
        printf "%d jobs, on time %.3f/%.3f, longest wait %d of %d ms, RSS %d to %d KiB (host: stalls of %d ms)", v["jobs"],
            v["on_time_free"], v["on_time_pinned"], v["wait_max_ms"], v["bound_ms"], v["rss_before_kb"], v["rss_after_kb"], v["host_stall_ms"] }' "$1"
}

is_alone() { [[ $(vm_option "$1" alone) == yes ]]; }

# run_cases JOBS CASE...: on all kernels, so many guests at once.
run_cases() {
    local jobs=$1 kernel case
    shift
    for kernel in "${kernels[@]}"; do
        for case; do
            while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
            run_case "$kernel" "$case" &
        done
    done
    wait
}

parse_arguments "$@"
if [[ -n $list ]]; then
    for case in "${cases[@]}"; do printf '%-24s %s\n' "$case" "$(about "$case")"; done
    exit 0
fi
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
for kernel in "${kernels[@]}"; do "$REPO/scripts/kernel.sh" "$kernel" >/dev/null; done
if [[ " ${cases[*]} " == *" neighbours "* ]]; then "$REPO/scripts/peers.sh" scx_bpfland; fi
pack_helpers "${HELPERS[@]}"
mkdir -p "$out"
program_hash=$(sha256sum <"$program" | cut -c1-16)
together=() alone=()
for case in "${cases[@]}"; do if is_alone "$case"; then alone+=("$case"); else together+=("$case"); fi; done
run_cases "$jobs" "${together[@]}"
run_cases 1 "${alone[@]}"
for kernel in "${kernels[@]}"; do
    for case in "${cases[@]}"; do cat "$out/$kernel/$case/result"; done
done >"$out/results.tsv"
cut -f1 "$out/results.tsv" | sort | uniq -c | awk '{ printf "%s%d %s", (NR > 1 ? ", " : ""), $1, $2 } END { print "" }'
say "figures: $out/results.tsv"
! cut -f1 "$out/results.tsv" | grep -q FAIL
