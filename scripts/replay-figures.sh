#!/usr/bin/env bash
# The figures behind docs/measurements/replay.md, measured anew in an icount guest and printed.
#
#   scripts/replay-figures.sh [OPTION]... [PART]...   parts: examples agreement recording
#                                                     (default: all)
#
#   --kernel V      as scripts/vm takes it (default: 6.18.15)
#   --seconds N     how long the recording is (default: 600)
#   --keep DIR      keep the reports there
#   --program P     the scx_temponet to use (default: the release build)
#
#   examples    every workload that ships with rt-app, live under edf: what ran, and
#               why the others did not
#   agreement   three periodic threads on one CPU at U = 0.7, 0.9 and 1.25: compliance
#               live and in the simulator, under edf and plain-edf
#   recording   rt-app and stress-ng recorded, then replayed in the simulator: every
#               task's utilisation beside what the kernel counted meanwhile
#
# Ends with status 1 when a promise of docs/measurements/replay.md does not hold.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=6.18.15 seconds=600 program=$REPO/target/release/scx_temponet keep=''
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --seconds | --program | --keep) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernel=$2; shift 2 ;;
        --seconds) [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "--seconds: not a number: $2"; seconds=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --keep) keep=$2; shift 2 ;;
        -*) usage_error "unknown option: $1" ;;
        *) break ;;
    esac
done
(($#)) || set -- examples agreement recording
for part in "$@"; do
    [[ $part == examples || $part == agreement || $part == recording ]] || usage_error "unknown part: $part"
done
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
"$REPO/scripts/setup.sh" vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# in_guest PART CPUS LIMIT [ADD]...: runs guest/replay-figures.sh's part; its files come to
# $work/PART.
in_guest() {
    local part=$1 cpus=$2 limit=$3 add adds=()
    shift 3
    for add in "$@"; do adds+=(--add "$add"); done
    "$REPO/scripts/vm" --mode icount --kernel "$kernel" --cpus "$cpus" --timeout "$limit" --program "$program" \
        --out "$work/$part" --add "$REPO/scripts/guest/replay-figures.sh:/plan/figures.sh" \
        ${adds[@]+"${adds[@]}"} -- bash /plan/figures.sh "$part" "$seconds"
}

failed=0
for part in "$@"; do
    printf '== %s (Linux %s)\n' "$part" "$kernel"
    case $part in
        # One of them names CPUs that two would not have.
        examples) in_guest examples 4 3600 /usr/share/doc/rt-app/examples:/plan/examples ;;
        agreement) in_guest agreement 2 3600 ;;
        recording) in_guest recording 2 $((1800 + 10 * seconds)) ;;
    esac
    if [[ -n $keep ]]; then
        mkdir -p "$keep"
        cp -r "$work/$part" "$keep/"
    fi
    python3 "$REPO/scripts/replay-figures.py" "$part" "$work/$part" "$program" || failed=1
done
exit "$failed"
