#!/usr/bin/env bash
# Who gets how much of the CPU, and how soon, under our scheduler, the kernel's own and a peer.
#
#   tests/vm/fair.sh [OPTION]... [CASE]...
#
#   --kernel V      only this one; may be given again (default: oldest and newest)
#   --program P     the scx_temponet to test (default: the release build)
#   --seed S        or A..B, for the cases that are drawn from a seed (default: 1)
#   --against LIST  schedulers, separated by commas (default: eevdf, scx_bpfland where
#                   scripts/peers.sh has built it, temponet): eevdf is the kernel's own;
#                   temponet, distilled and edf are ours, by policy; scx_NAME is a peer.
#                   Without eevdf the lines that compare with it are left out
#   --seconds N     the window that is measured, after a second that is not (default: 10)
#   --json F        all records and verdicts, by kernel
#   --out DIR       where the guests' files go (default: target/fair): DIR/KERNEL
#
# Cases (default: all), or one variant as CASE/VARIANT, such as rhythm/seed-1-set-3:
#   fork-stream  a loop of short processes beside a hog, in one cgroup
#   three-33     three tasks of 33 % of another user beside a hog, in one cgroup and in two
#   duty-59      a task of 59 % in a cgroup of weight 1 against a hog in one of weight 10000
#   weights      2 to 40 tasks in nested cgroups, weights and naps from the seed
#   cpu-max      cgroups with cpu.max: alone, 200 hogs, nested, siblings, a declared task
#   make         `make -j2` of zlib beside a hog
#   rhythm       ten sets per seed of periodic tasks beside hogs, undeclared and declared
#   small-declarations
#                five sets per seed whose declarations are 1.5 to 3 times too small
#   mutex        a declared thread and a hog of nice 19 that share a mutex
#
# One guest per kernel, with one CPU whose time counts instructions, does all runs one after
# the other. Status 0: every line that must hold does; 1: one does not; 2: bad arguments.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
. "$REPO/tests/vm/fair/toolchain.sh"

kernels=() cases=() seed=1 seconds=10 against='' json='' out=$REPO/target/fair
program=$REPO/target/release/scx_temponet
fair=$REPO/target/quick/examples/fair

parse_arguments() {
    local option
    while (($#)); do
        option=$1
        shift
        case $option in
            -h | --help) print_manual; exit 0 ;;
            --kernel | --program | --seed | --against | --seconds | --json | --out) ;;
            -*) usage_error "unknown option: $option" ;;
            *) cases+=("$option"); continue ;;
        esac
        (($#)) || usage_error "$option wants a value"
        case $option in
            --kernel) kernels+=("$1") ;;
            --program) [[ -x $1 ]] || usage_error "--program: no such program: $1"; program=$1 ;;
            --seed) [[ $1 =~ ^[0-9]{1,8}(\.\.[0-9]{1,8})?$ ]] || usage_error "--seed: neither a number nor A..B: $1"; seed=$1 ;;
            --against)
                [[ $1 =~ ^(eevdf|temponet|distilled|edf|scx_[a-z_]+)(,(eevdf|temponet|distilled|edf|scx_[a-z_]+))*$ ]] ||
                    usage_error "--against: not a list of schedulers: $1"
                against=$1
                ;;
            --seconds) [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--seconds: not a number: $1"; seconds=$1 ;;
            --json | --out) printf -v "${option#--}" %s "$1" ;;
        esac
        shift
    done
    # shellcheck disable=SC2153
    ((${#kernels[@]})) || kernels=("${KERNELS[0]}" "${KERNELS[-1]}")
    [[ -x $program ]] || die "no $program: build it first (cargo build --release)"
    if [[ -z $against ]]; then
        against=eevdf,temponet
        if [[ -x $CACHE/peers/bin/scx_bpfland ]]; then against=eevdf,scx_bpfland,temponet; fi
    fi
    local peer
    for peer in ${against//,/ }; do
        [[ $peer != scx_* || -x $CACHE/peers/bin/$peer ]] || usage_error "--against: no $peer here (scripts/peers.sh $peer builds it)"
    done
}

# It knows nothing of the scheduler's code, so only a change of its own makes it old.
build_fair() {
    [[ -n $(find "$REPO/tests/vm/fair" "$REPO/tests/vm/storm" -name '*.rs' -newer "$fair" 2>&1) ]] || return 0
    (cd "$REPO" && cargo build --locked --profile quick --quiet --example fair) || die "the example fair was not built"
}

# play KERNEL: its guest, and what it says as it goes.
play() {
    local folder=$out/$1 runs status=0
    runs=$(wc -l <"$out/plan")
    rm -rf "$folder"
    mkdir -p "$folder"
    "$REPO/scripts/vm" --no-fma --mode icount --cpus 1 --kernel "$1" --program "$program" --timeout $((300 + runs * (seconds + 15) * 12)) \
        --console "$folder/console" --out "$folder" --add "$work/fair:/usr/bin/fair" --add "$out/plan:/fair/plan" "${rules[@]}" "${toolchain[@]}" \
        --add "$REPO/scripts/guest/measure.sh:/fair/measure.sh" --add "$REPO/tests/vm/fair/in_guest.sh:/fair/in_guest.sh" -- bash /fair/in_guest.sh "$seconds" 2>&1 | sed -u "s/^/$1: /" >&2 || status=$?
    ((status == 0)) || say "the guest of $1 ended with status $status"
}

parse_arguments "$@"
build_fair
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
"$fair" plan --rules "$work/rules" --seed "$seed" --against "$against" "${cases[@]}" >"$out/plan" 2>"$work/error" || usage_error "$(sed -nE '1s/^(error|fair): //p' "$work/error")"
toolchain=()
if grep -q '^make ' "$out/plan"; then mapfile -t toolchain < <(toolchain_in_guest); fi
rules=()
for file in "$work"/rules/*.toml; do
    [[ ! -e $file ]] || rules+=(--add "$file:/fair/rules/${file##*/}")
done
strip -o "$work/fair" "$fair"
status=0
for kernel in "${kernels[@]}"; do
    play "$kernel"
    printf '== %s\n' "$kernel"
    "$fair" report "$out/plan" "$out/$kernel" --json "$out/$kernel/report.json" || status=1
done
if [[ -n $json ]]; then
    python3 -c 'import json, sys; print(json.dumps({k: json.load(open(f"{sys.argv[1]}/{k}/report.json")) for k in sys.argv[2:]}, indent=1))' "$out" "${kernels[@]}" >"$json"
fi
exit $status
