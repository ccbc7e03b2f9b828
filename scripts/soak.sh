#!/usr/bin/env bash
# Runs the scheduler for an hour of guest time under a mixed load, on the oldest and the
# newest kernel we promise, holds it to its promises at the end, and prints the figures.
#
#   scripts/soak.sh [OPTION]...
#
#   --minutes N     guest minutes (default: 60)
#   --kernel V      only this one; may be given again (default: oldest and newest)
#   --policy P      what the scheduler is loaded with (default: $POLICY, else temponet)
#   --cpus N        vCPUs (default: 2)
#   --mode M        as scripts/vm takes it: fast or icount (default: fast)
#   --jobs N        so many guests at once (default: 1)
#   --program P     the scx_temponet to test (default: the release build)
#   --out DIR       where logs and figures go (default: target/soak); DIR/KERNEL/vm tells
#                   how far it is
set -euo pipefail
. "$(dirname "$0")/lib.sh"
. "$REPO/tests/vm/stress/host.sh"

HELPERS=(stats_watch sentinel)
minutes=60 kernels=() policy=${POLICY:-temponet} cpus=2 mode=fast jobs=1
program=$REPO/target/release/scx_temponet out=$REPO/target/soak

while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --minutes | --kernel | --policy | --cpus | --mode | --jobs | --program | --out) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --minutes | --cpus | --jobs) [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "$1: not a number: $2" ;;&
        --kernel) kernels+=("$2") ;;
        --minutes | --policy | --cpus | --mode | --jobs | --program | --out) printf -v "${1#--}" %s "$2" ;;
        *) usage_error "unknown option: $1" ;;
    esac
    shift 2
done
((${#kernels[@]})) || kernels=("${KERNELS[0]}" "${KERNELS[-1]}")
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"

# soak KERNEL
soak() {
    local folder=$out/$1 status=0 verdict patience=$((minutes * 90 + 300))
    [[ $mode == fast ]] || patience=$((patience * 8))
    boot "$folder" --kernel "$1" --cpus "$cpus" --mode "$mode" --mem 2G --program "$program" --timeout "$patience" \
        -- env POLICY="$policy" MINUTES="$minutes" bash /stress/in_guest.sh soak $((minutes * 90 + 240)) || status=$?
    case $status in
        0) verdict=held ;;
        "$DISTURBED") verdict='FAILED: disturbed by the host' ;;
        *) verdict=FAILED ;;
    esac
    printf '== kernel %s, %s minutes, policy %s: %s\n' "$1" "$minutes" "$policy" "$verdict"
    { cat "$folder/figures" "$folder/memory" 2>/dev/null || true; } | sed 's/^/   /'
    if ((status)); then { tail -n 15 "$folder/log" "$folder/vm" 2>/dev/null || true; } | sed 's/^/   /'; fi
    echo "$status" >"$folder/status"
}

for kernel in "${kernels[@]}"; do "$REPO/scripts/kernel.sh" "$kernel" >/dev/null; done
pack_helpers "${HELPERS[@]}"
for kernel in "${kernels[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    soak "$kernel" &
done
wait
for kernel in "${kernels[@]}"; do (($(<"$out/$kernel/status") == 0)) || exit 1; done
