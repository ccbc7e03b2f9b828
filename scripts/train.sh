#!/usr/bin/env bash
# Remakes the default model from its recipe and prints its evaluation. Sets up
# what it needs first.
#
#   scripts/train.sh [OUT.onnx]     default: models/temponet.onnx
#
# THREADS=N limits the threads, SETS=N the task sets per load of the evaluation.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    -*) usage_error "unknown option: $1" ;;
esac
(($# < 2)) || usage_error "takes at most one file"
out=$(realpath -m -- "${1:-$REPO/models/temponet.onnx}")
threads=${THREADS:-$(nproc)} sets=${SETS:-200}
cd "$REPO"
scripts/setup.sh build
cargo build --locked --release
target/release/scx_temponet train --config models/temponet.toml --out "$out" --threads "$threads"
target/release/scx_temponet eval --suite lines --model "$out" --sets "$sets" --threads "$threads"
