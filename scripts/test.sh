#!/usr/bin/env bash
# Checks everything: format, lints, unit tests, and the scheduler on every
# kernel we promise, in a guest. Sets up what it needs first.
#
#   scripts/test.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    '') ;;
    -h | --help) print_manual; exit 0 ;;
    *) usage_error "takes no argument: $1" ;;
esac
cd "$REPO"

step() { printf '\n== %s\n' "$*"; }

step "set-up"
scripts/setup.sh build vm
ORT_DYLIB_PATH=$(scripts/setup.sh ort)
export ORT_DYLIB_PATH
for kernel in "${KERNELS[@]}"; do scripts/kernel.sh "$kernel" >/dev/null; done
step "cargo fmt --check"
cargo fmt --check
step "cargo clippy"
cargo clippy --locked --profile quick --all-targets -- -D warnings
step "cargo test"
# rt-app's own examples come with its package; without them the test says so and fails.
RTAPP_EXAMPLES=/usr/share/doc/rt-app/examples cargo test --locked --profile quick
step "headers of bpf/ by themselves"
scripts/check-bpf-headers.sh
step "ONNX files"
scripts/check-onnx.sh
step "cargo build --release"
cargo build --locked --release
step "the reference of options and statistics"
scripts/cli-reference.sh --check
step "the page of replay in a browser"
scripts/check-report.sh
step "the scheduler on the oldest and the newest kernel"
# What depends little on the kernel is tried on one of them, with one of the backends.
tests/vm/run.sh --kernel "${KERNELS[0]}" --without replay --without recovery --without agent_swap \
    --without agent_namespace --without dump
tests/vm/run.sh --kernel "${KERNELS[-1]}" --ort --without agent_mirror --without starvation \
    --without yield --without hotplug
step "and, in short, on those in between"
between=()
for kernel in "${KERNELS[@]:1:${#KERNELS[@]}-2}"; do between+=(--kernel "$kernel"); done
tests/vm/run.sh "${between[@]}" load hotplug shares agent
step "several caches and nodes, SMT, and CPUs that a task may not use"
tests/vm/run.sh --kernel 6.18.15 --topology sockets=2,cores=2,threads=2 --nodes 2 load placement
tests/vm/run.sh --kernel "${KERNELS[0]}" --topology sockets=2,cores=2 placement mending
tests/vm/run.sh --kernel "${KERNELS[-1]}" --topology sockets=4,cores=1 placement hotplug
tests/vm/run.sh --kernel 6.18.15 --topology sockets=1,cores=4 masks
step "storms: three new seeds on the oldest and the newest kernel"
# 75: the host stood in the way, three times.
tests/vm/storm.sh --count 3 --seconds 20 --jobs 2 || (($? == 75))
