#!/usr/bin/env bash
# Builds scx_temponet: target/release/scx_temponet. Sets up what it needs first.
#
#   scripts/build.sh [ARGUMENT]...     arguments go to cargo build
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
esac
cd "$REPO"
scripts/setup.sh build
exec cargo build --locked --release "$@"
