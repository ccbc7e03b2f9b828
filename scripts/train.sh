#!/usr/bin/env bash
# Remakes the default model from its recipe and prints its evaluation.
#
#   scripts/train.sh [OUT.onnx]
#
# THREADS=N limits the threads, SETS=N the task sets per load of the evaluation.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-models/temponet.onnx}
threads=${THREADS:-$(nproc)}
sets=${SETS:-200}

export BPF_CLANG=${BPF_CLANG:-clang-19}
cargo build --release --quiet --bin scx_temponet
temponet=target/release/scx_temponet

"$temponet" train --config models/temponet.toml --out "$out" --threads "$threads"
"$temponet" eval --suite lines --model "$out" --sets "$sets" --threads "$threads"
