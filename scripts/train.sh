#!/usr/bin/env bash
# Remakes the default model from its recipe, with its distilled table, and prints its
# evaluation. Sets up what it needs first.
#
#   scripts/train.sh [OUT.onnx]     default: models/temponet.onnx
#
# THREADS=N limits the threads, ROUNDS=N the rounds of training (to try it out: the
# model is then another). SETS=N is the number of task sets per load of the
# evaluation (default: 200), MANY=N of those with hundreds of tasks on eight cores,
# which take over a minute each (default: 8).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    -*) usage_error "unknown option: $1" ;;
esac
(($# < 2)) || usage_error "takes at most one file"
out=$(realpath -m -- "${1:-$REPO/models/temponet.onnx}")
threads=${THREADS:-$(nproc)} sets=${SETS:-200} many=${MANY:-8}
rounds=()
[[ -z ${ROUNDS:-} ]] || rounds=(--rounds "$ROUNDS")
cd "$REPO"
scripts/setup.sh build
cargo build --locked --release
target/release/scx_temponet train --config models/temponet.toml --out "$out" --threads "$threads" "${rounds[@]}"
target/release/scx_temponet explain --model "$out" --fit-distilled
target/release/scx_temponet eval --suite lines --lines ABCDE --model "$out" --sets "$sets" --threads "$threads"
target/release/scx_temponet eval --suite lines --lines F --model "$out" --sets "$many" --threads "$threads"
