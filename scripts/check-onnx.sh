#!/usr/bin/env bash
# Checks that a model's ONNX files are valid by the official ONNX checker and
# that ONNX Runtime, from Python, answers as the native backend does.
#
#   scripts/check-onnx.sh [MODEL.onnx]     default: an untrained one
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
esac
(($# < 2)) || usage_error "takes at most one model"

python=$(pinned_python onnx-checker "onnx, onnxruntime")
model=()
(($# == 0)) || model=("$(realpath -- "$1")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$REPO"
cargo run --locked --profile quick -q --example onnx_sample -- "$work" "${model[@]}"
"$python" scripts/check-onnx.py "$work"
