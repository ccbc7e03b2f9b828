#!/usr/bin/env bash
# Sets up what building, running and testing need on a Debian machine. Does
# nothing, silently, where everything is there.
#
#   scripts/setup.sh [PART]...     parts: build vm ort lp prometheus (default: build vm ort)
#
#   build   compilers, libraries, the Rust toolchain
#   vm      QEMU and the programs that the test guest runs
#   ort     ONNX Runtime's shared library, in the cache folder; prints its path
#   lp      what the cargo feature lp builds its solver with
#   prometheus
#           Prometheus, promtool and node_exporter, in the cache folder; prints its path
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# The agent opens 1.20 and newer. The file has the hashes too.
ORT_PINNED=$REPO/scripts/pinned/onnxruntime.txt
ORT_VERSION=$(sed -n 's/^onnxruntime==\([0-9.]*\).*/\1/p' "$ORT_PINNED")
RUSTUP_VERSION=1.28.2

setup_build() {
    need_packages build-essential clang-19 llvm-19 libelf-dev zlib1g-dev pkg-config libseccomp-dev \
        ca-certificates curl git
    command -v cargo >/dev/null || install_rust
}

# Debian keeps a recent toolchain for its browsers, as signed packages like any other. Where it
# is too old for this crate, or this is no Debian, rustup fetches one.
install_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$REPO/Cargo.toml")
    found=$(package_candidate rustc-web)
    if [[ -n $found ]] && dpkg --compare-versions "$found" ge "$wanted"; then
        need_packages rustc-web cargo-web rustfmt-web
    else
        with_lock rustup install_rustup
    fi
}

# rust-toolchain.toml names the toolchain; rustup fetches it on first use.
install_rustup() {
    [[ -x $HOME/.cargo/bin/cargo ]] && return
    say "installing rustup and the Rust toolchain"
    local arch hash work
    arch=$(uname -m)
    case $arch in
        x86_64) hash=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c ;;
        aarch64) hash=e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c ;;
        *) die "no rustup is known for $arch here: install it yourself" ;;
    esac
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    curl --proto '=https' --tlsv1.2 -fsS -o "$work/rustup-init" \
        "https://static.rust-lang.org/rustup/archive/$RUSTUP_VERSION/$arch-unknown-linux-gnu/rustup-init"
    printf '%s  %s\n' "$hash" "$work/rustup-init" | sha256sum --check --quiet >&2 ||
        die "rustup $RUSTUP_VERSION is not the file that it was"
    chmod +x "$work/rustup-init"
    "$work/rustup-init" -y --quiet --profile minimal --default-toolchain none --no-modify-path >&2
}

setup_lp() {
    setup_build
    need_packages cmake
}

setup_vm() {
    need_packages qemu-system-x86 busybox-static cpio jq stress-ng rt-app rt-tests util-linux python3 binutils
    find_qemu || with_lock qemu fetch_qemu
}

# Before 8.1, QEMU's icount mode let the first vCPU starve the others, so Debian
# 12's own QEMU lends its libraries, and a newer one is unpacked beside it.
fetch_qemu() {
    find_qemu && return
    need_packages ca-certificates debian-archive-keyring
    private_apt_init qemu bookworm-backports
    say "fetching a newer QEMU"
    local work package
    work=$(mktemp -d "$CACHE/.qemu.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    cd "$work"
    apt-get "${PRIVATE_APT[@]}" download {qemu-system-x86,qemu-system-common,qemu-system-data,seabios}/bookworm-backports >&2
    for package in ./*.deb; do dpkg-deb -x "$package" tree; done
    tree/usr/bin/qemu-system-x86_64 --version >/dev/null || die "the newer QEMU does not run here"
    mv tree "$CACHE/qemu"
}

setup_ort() {
    local library=$CACHE/onnxruntime/$ORT_VERSION/libonnxruntime.so
    if [[ ! -e $library ]]; then
        need_packages python3 python3-pip ca-certificates
        with_lock onnxruntime fetch_ort "$library"
    fi
    printf '%s\n' "$library"
}

# The PyPI wheel carries the library; nothing else of it is wanted.
fetch_ort() {
    local library=$1 work
    [[ -e $library ]] && return
    say "fetching ONNX Runtime $ORT_VERSION"
    mkdir -p "$CACHE/onnxruntime"
    work=$(mktemp -d "$CACHE/onnxruntime/.fetch.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --implementation cp --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" \
        -d "$work" -r "$ORT_PINNED" >&2 || die "ONNX Runtime $ORT_VERSION could not be fetched with its hash"
    python3 - "$work" <<'PYTHON'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
(wheel,) = work.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [n for n in archive.namelist() if "/capi/libonnxruntime.so." in n]
    (work / "library").write_bytes(archive.read(name))
PYTHON
    mkdir -p "$(dirname "$library")"
    mv "$work/library" "$library"
}

setup_prometheus() {
    local folder=$CACHE/prometheus
    if [[ ! -x $folder/usr/bin/promtool ]]; then
        need_packages ca-certificates debian-archive-keyring
        with_lock prometheus fetch_prometheus "$folder"
    fi
    printf '%s\n' "$folder"
}

# Debian's packages start services where they are installed, so they are only unpacked.
fetch_prometheus() {
    local folder=$1 work package
    [[ ! -x $folder/usr/bin/promtool ]] || return 0
    private_apt_init prometheus bookworm
    say "fetching Prometheus"
    work=$(mktemp -d "$CACHE/.prometheus.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    cd "$work"
    apt-get "${PRIVATE_APT[@]}" download prometheus prometheus-node-exporter >&2
    for package in ./*.deb; do dpkg-deb -x "$package" tree; done
    mv tree "$folder"
}

case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
esac
(($#)) || set -- build vm ort
for part in "$@"; do
    case $part in
        build | vm | ort | lp | prometheus) ;;
        *) usage_error "unknown part: $part" ;;
    esac
done
for part in "$@"; do "setup_$part"; done
