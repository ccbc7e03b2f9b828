#!/usr/bin/env bash
# Builds a 6.12 kernel with sched_ext from Debian's source package into the
# cache: a quarter of an hour on two free cores. Debian's own 6.12 images have
# sched_ext switched off, and 6.12 is the oldest kernel we promise.
#
#   scripts/build-kernel.sh VERSION [JOBS]    e.g. 6.12.107 (default: all cores)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    6.12 | 6.12.*) version=$1 ;;
    *) usage_error "which 6.12?" ;;
esac
jobs=${2:-$(nproc)}

build() {
    local work package log source=linux-source-6.12
    [[ -e $CACHE/kernels/$version/release ]] && return
    package=$(apt-cache madison $source | awk -v wanted="$version-" 'index($3, wanted) == 1 { print $3; exit }')
    if [[ -z $package ]]; then
        package=$(apt-cache madison $source | awk '{ print $3; exit }')
        [[ -n $package ]] || die "apt on this machine offers no $source (is the security suite in its sources?)"
        say "Debian no longer offers the source of $version; building $package in its place"
    fi
    mkdir -p "$CACHE/kernels"
    work=$(mktemp -d "$CACHE/kernels/.build.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    cd "$work"
    say "fetching $source $package"
    apt-get -q -o "APT::Sandbox::User=$(id -un)" download "$source=$package" >&2
    dpkg-deb -x ./*.deb package
    tar xf "package/usr/src/$source.tar.xz"
    rm -rf package ./*.deb
    cd "$source"
    cp "$REPO/scripts/kernel-6.12.fragment" kernel/configs/scx_temponet.config
    log=$CACHE/kernels/build-$version.log
    say "building it with $jobs job(s), log in $log"
    make x86_64_defconfig kvm_guest.config scx_temponet.config >"$log" 2>&1
    grep -q '^CONFIG_SCHED_CLASS_EXT=y' .config || die "the source did not accept sched_ext (see $log)"
    if ! make -j"$jobs" bzImage >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "the build failed (see $log)"
    fi
    "$REPO/scripts/kernel.sh" --seed "$version" arch/x86/boot/bzImage .config
    rm -f "$log"
}

need_packages build-essential bc bison flex libelf-dev libssl-dev dwarves xz-utils python3 ca-certificates
with_lock "build-$version" build
