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

VENV=$CACHE/onnx-venv

make_venv() {
    "$VENV/bin/python" -c 'import onnx, onnxruntime' 2>/dev/null && return
    say "installing the ONNX checker and ONNX Runtime for Python"
    python3 -m venv "$VENV"
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: --require-hashes \
        -r "$REPO/scripts/pinned/onnx-checker.txt" >&2
}

need_packages python3 python3-venv ca-certificates
with_lock onnx-venv make_venv
model=()
(($# == 0)) || model=("$(realpath -- "$1")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$REPO"
cargo run --locked --profile quick -q --example onnx_sample -- "$work" "${model[@]}"
"$VENV/bin/python" scripts/check-onnx.py "$work"
