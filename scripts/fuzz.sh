#!/usr/bin/env bash
# Fuzzes every target of fuzz/ for a while, beginning with the inputs that are kept.
#
#   scripts/fuzz.sh [--seconds N] [--program P] [TARGET]...
#
#   --seconds N    for each target (default: 60)
#   --program P    the scx_temponet that draws first task sets (default: the release build)
#
# Without a nightly compiler or cargo-fuzz it fuzzes nothing, says so loudly, and ends with
# status 0: `cargo test` tries the kept inputs anyway. Status 1: an input breaks a promise; it
# is in fuzz/artifacts then.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

seconds=60 program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --seconds | --program) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --seconds) [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || usage_error "--seconds: not a number: $2"; seconds=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        -*) usage_error "unknown option: $1" ;;
        *) break ;;
    esac
done
cd "$REPO"
targets=("$@")
if ((${#targets[@]} == 0)); then
    for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
for target in "${targets[@]}"; do
    [[ -e fuzz/fuzz_targets/$target.rs ]] || usage_error "no such target: $target"
done

not_run() { printf 'NOT FUZZED: %s (%s)\n' "${targets[*]}" "$1"; exit 0; }
cargo +nightly --version >/dev/null 2>&1 || not_run "no nightly compiler here: rustup toolchain install nightly"
cargo fuzz --version >/dev/null 2>&1 || not_run "no cargo-fuzz here: cargo install cargo-fuzz --locked"

# Work on a copy, so that nothing that is kept changes.
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
PROGRAM=$program fuzz/seed.sh "$corpus"
failed=()
for target in "${targets[@]}"; do
    printf '== %s, %s s\n' "$target" "$seconds"
    cargo +nightly fuzz run "$target" "$corpus/$target" -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 2>"$corpus/log" || failed+=("$target")
    grep -E 'number_of_executed_units|^SUMMARY|panicked|Test unit written' "$corpus/log" || tail -n 20 "$corpus/log"
done
((${#failed[@]} == 0)) || die "an input breaks a promise: ${failed[*]}"
