#!/usr/bin/env bash
# Builds other sched_ext schedulers to compare with, into the cache; scripts/vm
# takes them along. Does nothing for those that are there.
#
#   scripts/peers.sh [scx_bpfland] [scx_rustland] [scx_flash] ...
#                                          (default: scx_bpfland)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

PEER_VERSION=1.1.4

install_peers() {
    local peer
    # The toolchain that rust-toolchain.toml names; one target folder, because
    # the peers share most of what they are made of.
    cd "$REPO"
    export CARGO_TARGET_DIR=$CACHE/peers/target
    for peer in "$@"; do
        [[ -x $CACHE/peers/bin/$peer ]] && continue
        say "building $peer $PEER_VERSION (some minutes, once)"
        cargo install --quiet --locked --version "$PEER_VERSION" --root "$CACHE/peers" "$peer"
    done
}

case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
esac
(($#)) || set -- scx_bpfland
missing=()
for peer in "$@"; do
    [[ $peer =~ ^scx_[a-z_]+$ ]] || usage_error "not a scheduler's name: $peer"
    [[ -x $CACHE/peers/bin/$peer ]] || missing+=("$peer")
done
((${#missing[@]})) || exit 0
"$REPO/scripts/setup.sh" build
with_lock peers install_peers "${missing[@]}"
