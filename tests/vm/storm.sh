#!/usr/bin/env bash
# A storm: from a seed a random machine, a random population of tasks and a random stream of
# events, in a guest under the scheduler, with its promises checked all along.
#
#   tests/vm/storm.sh [OPTION]...
#
#   --seed S        the story of this seed; may be given again
#   --count N       so many new seeds, which are printed (default: 1, without --seed)
#   --seconds N     length of a story, in guest seconds (default: 30)
#   --kernel V      only this one; may be given again (default: oldest and newest)
#   --plan          print the stories, and run nothing
#   --tasks LIST    only these tasks of the story, by index, such as 0-5,9 or none
#   --events LIST   only these events
#   --shrink        look for the smallest part of each story that still fails
#   --runs N        for --shrink: at most so many guests per story (default: 30)
#   --policy P      what the scheduler is loaded with (default: $POLICY, else temponet)
#   --mode M        as scripts/vm takes it: fast, turns or icount (default: fast)
#   --jobs N        so many guests at once (default: 1)
#   --program P     the scx_temponet to test (default: the release build)
#   --out DIR       where logs and results go (default: target/storm): DIR/KERNEL/SEED, and
#                   a line per story in DIR/results.tsv: verdict, seed, kernel, seconds,
#                   machine, population, longest wait (ms), events done, what was tested
#   --resume        leave out what DIR/results.tsv says has passed with the same program,
#                   tests and options
#
# A story is a function of its seed and length alone: the same command tells it again. A
# guest that the host disturbed too much to tell is tried again, twice. Status 0: all
# promises were kept; 1: one was broken; 75: only the host stood in the way.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
. "$REPO/tests/vm/stress/host.sh"

HELPERS=(stats_watch sentinel storm)
seeds=() kernels=() count=0 seconds=30 policy=${POLICY:-temponet} mode=fast jobs=1 runs=30
program=$REPO/target/release/scx_temponet out=$REPO/target/storm plan='' shrink='' resume=''
filters=()

parse_arguments() {
    local option
    while (($#)); do
        option=$1
        shift
        case $option in
            -h | --help) print_manual; exit 0 ;;
            --plan) plan=1; continue ;;
            --shrink) shrink=1; continue ;;
            --resume) resume=1; continue ;;
            --seed | --count | --seconds | --kernel | --tasks | --events | --runs | --policy | --mode | --jobs | --program | --out) ;;
            *) usage_error "unknown option: $option" ;;
        esac
        (($#)) || usage_error "$option wants a value"
        case $option in
            --seed) [[ $1 =~ ^[0-9]{1,18}$ ]] || usage_error "--seed: not a number: $1"; seeds+=("$1") ;;
            --kernel) kernels+=("$1") ;;
            --tasks | --events)
                [[ $1 == none || $1 =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] || usage_error "$option: not a list such as 0-5,9: $1"
                set_filter "$option" "$1"
                ;;
            --mode) [[ $1 == fast || $1 == turns || $1 == icount ]] || usage_error "--mode: neither fast nor turns nor icount: $1"; mode=$1 ;;
            --count | --seconds | --jobs | --runs)
                [[ $1 =~ ^[1-9][0-9]{0,8}$ ]] || usage_error "$option: not a number: $1"
                printf -v "${option#--}" %s "$1"
                ;;
            --policy | --program | --out) printf -v "${option#--}" %s "$1" ;;
        esac
        shift
    done
    ((${#kernels[@]})) || kernels=("${KERNELS[0]}" "${KERNELS[-1]}")
    if ((${#seeds[@]} == 0 && count == 0)); then count=1; fi
    for ((; count > 0; count--)); do seeds+=("$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"); done
    ((${#seeds[@]} == 1 || ${#filters[@]} == 0)) || usage_error "--tasks and --events are of one seed's story"
}

# set_filter OPTION LIST: instead of what was given before.
set_filter() {
    local i
    for ((i = 0; i < ${#filters[@]}; i += 2)); do
        if [[ ${filters[i]} == "$1" ]]; then filters[i + 1]=$2 && return; fi
    done
    filters+=("$1" "$2")
}

# of SEED SUBCOMMAND [OPTION]...: asks the storm about a story.
of() { "$helpers/storm" "$2" --seed "$1" --seconds "$seconds" "${filters[@]}" "${@:3}"; }

# boot_story KERNEL SEED FOLDER: one guest; its status.
boot_story() {
    local limit=$((seconds * 6 + 300)) patience options
    patience=$((limit + 120))
    if [[ $mode == icount ]]; then patience=$((patience * 8)); fi
    read -ra options <<<"$(of "$2" plan --part vm-options)"
    boot "$3" --kernel "$1" --mode "$mode" --program "$program" --timeout "$patience" "${options[@]}" \
        -- env POLICY="$policy" STORY="--seed $2 --seconds $seconds ${filters[*]}" bash /stress/in_guest.sh storm "$limit"
}

value_of() { sed -n "s/^$2=//p" "$1/storm" 2>/dev/null | grep . || echo -; }

# run_story KERNEL SEED: leaves its files, a line of the results, and its verdict to read.
run_story() {
    local kernel=$1 seed=$2 folder=$out/$1/$2 status=0 verdict=PASS started=$SECONDS
    if [[ -n $resume ]] && has_passed "$seed" "$kernel"; then
        printf 'PASS  seed %-12s %-10s before\n' "$seed" "$kernel"
        return
    fi
    try_guest "seed $seed on $kernel" "$folder" boot_story "$kernel" "$seed" "$folder" || status=$?
    case $status in
        0) ;;
        "$DISTURBED") verdict=DISTURBED ;;
        *) verdict=FAIL ;;
    esac
    of "$seed" plan >"$folder/story"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$verdict" "$seed" "$kernel" "$seconds" \
        "$(of "$seed" plan --part machine)" "$(of "$seed" plan --part population)" \
        "$(value_of "$folder" storm_longest_wait_ms)" "$(value_of "$folder" events_done)" "$setting" >"$folder/result"
    # In one piece: several stories may end at once.
    cat "$folder/result" >>"$out/results.tsv"
    {
        printf '%-5s seed %-12s %-10s %4s s  %s; longest wait %s ms, no progress for %s ms, %s events\n' "$verdict" "$seed" "$kernel" $((SECONDS - started)) \
            "$(of "$seed" plan --part machine)" "$(value_of "$folder" storm_longest_wait_ms)" "$(value_of "$folder" storm_longest_gap_ms)" "$(value_of "$folder" events_done)"
        if ((status)); then tell_failure "$status" "$folder" "--seed $seed --seconds $seconds --kernel $kernel ${filters[*]}"; fi
    } >"$folder/verdict"
    cat "$folder/verdict"
    if [[ $verdict == FAIL && -n $shrink ]]; then shrink_story "$kernel" "$seed"; fi
}

# tell_failure STATUS FOLDER OPTIONS
tell_failure() {
    if (($1 == DISTURBED)); then echo "      disturbed by the host, in three attempts"; fi
    {
        # Without the kernel's log, which is in the folder.
        awk '/^violation:/ { told = 1 } told && !/^\[/ && ++n <= 40' "$2/log"
        tail -n 12 "$2/log" "$2/vm"
    } 2>/dev/null | sed 's/^/      /' || true
    printf '      again: tests/vm/storm.sh %s\n      files: %s\n' "$3" "$2"
}

has_passed() { awk -F'\t' -v s="$1" -v k="$2" -v n="$seconds" -v t="$setting" \
    '$1 == "PASS" && $2 == s && $3 == k && $4 == n && $9 == t { found = 1 } END { exit !found }' "$out/results.tsv"; }

# shrink_story KERNEL SEED
shrink_story() {
    local happened
    printf '      shrinking seed %s on %s\n' "$2" "$1"
    # What had not happened yet when it failed is not needed.
    happened=$(sed -n 's/^events=//p' "$out/$1/$2/violation" 2>/dev/null) || true
    if [[ -n $happened ]]; then set_filter --events "$happened"; fi
    of "$2" shrink --runs "$runs" -- "$REPO/tests/vm/storm.sh" --seed "$2" --seconds "$seconds" --kernel "$1" \
        --policy "$policy" --mode "$mode" --program "$program" --out "$out/shrink" | sed 's/^/      smallest: /'
}

parse_arguments "$@"
pack_helpers "${HELPERS[@]}"
if [[ -n $plan ]]; then
    for seed in "${seeds[@]}"; do of "$seed" plan; done
    exit 0
fi
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
for kernel in "${kernels[@]}"; do "$REPO/scripts/kernel.sh" "$kernel" >/dev/null; done
mkdir -p "$out"
touch "$out/results.tsv"
program_hash=$(sha256sum <"$program" | cut -c1-16)
tests_hash=$(cat "$REPO"/tests/vm/stress/{lib,in_guest,storm}.sh "$REPO/tests/vm/guest/lib.sh" "${HELPERS[@]/#/$helpers/}" | sha256sum | cut -c1-16)
setting="$program_hash $tests_hash $policy $mode ${filters[*]}"
for seed in "${seeds[@]}"; do
    for kernel in "${kernels[@]}"; do
        while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
        run_story "$kernel" "$seed" &
    done
done
wait
status=0
for seed in "${seeds[@]}"; do
    for kernel in "${kernels[@]}"; do
        case $(cut -f1 "$out/$kernel/$seed/result" 2>/dev/null) in
            PASS) ;;
            DISTURBED) if ((status == 0)); then status=$DISTURBED; fi ;;
            *) status=1 ;;
        esac
    done
done
exit $status
