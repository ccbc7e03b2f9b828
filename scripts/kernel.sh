#!/usr/bin/env bash
# Makes a kernel with sched_ext available in the cache and prints its folder,
# which holds vmlinuz, config and release (what `uname -r` will say).
#
#   scripts/kernel.sh VERSION               6.12.107, 6.16.12, 6.18.15, 7.2.13, ...
#   scripts/kernel.sh PATH                  a bzImage, its config beside it
#                                           (config, or config-X for bzImage-X)
#   scripts/kernel.sh --seed VERSION IMAGE CONFIG
#                                           puts a kernel built elsewhere there
#
# 6.12 is built from Debian's source (scripts/build-kernel.sh), because Debian's
# own 6.12 has sched_ext switched off. Any other version is one of Debian's
# cloud kernels of trixie-backports or sid; a full name such as 7.2.12+deb13
# chooses among rebuilds. Nothing is installed on this machine.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# The version string of a bzImage: the boot header's field at 0x20e points to
# it, counted from 0x200.
image_release() {
    local offset
    offset=$(od -An -tu2 -j526 -N2 "$1")
    dd if="$1" bs=1 skip=$((offset + 512)) count=128 2>/dev/null | tr '\0' '\n' | sed -n '1s/ .*//p'
}

# Puts an image and its config into the cache, whole or not at all.
install_kernel() {
    local version=$1 image=$2 config=$3 staging
    mkdir -p "$CACHE/kernels"
    staging=$(mktemp -d "$CACHE/kernels/.new.XXXXXX")
    cp "$image" "$staging/vmlinuz"
    cp "$config" "$staging/config"
    chmod -R u+w,a+rX "$staging"
    image_release "$image" >"$staging/release"
    [[ -s $staging/release ]] || die "$image is no x86 kernel image"
    grep -q '^CONFIG_SCHED_CLASS_EXT=y' "$config" || say "note: $(<"$staging/release") has no sched_ext"
    rm -rf "$CACHE/kernels/$version"
    mv "$staging" "$CACHE/kernels/$version"
}

fetch_debian_kernel() {
    local version=$1 pattern name work image config
    [[ -e $CACHE/kernels/$version/release ]] && return
    need_packages ca-certificates debian-archive-keyring
    private_apt_init kernels trixie-backports sid
    pattern=${version//./\\.}
    pattern=${pattern//+/\\+}
    [[ $version == *+* ]] || pattern+='\+deb[0-9]+'
    # From 6.19 on the image is in linux-binary-* and its config in
    # linux-base-*; before that both are in linux-image-*.
    name=$(apt-cache "${PRIVATE_APT[@]}" search --names-only "^linux-(binary|image)-$pattern-cloud-amd64\$" |
        cut -d' ' -f1 | sort -V | head -n1)
    [[ -n $name ]] || die "Debian offers no cloud kernel $version now; give the path of a bzImage instead"
    local packages=("$name")
    [[ $name == linux-binary-* ]] && packages+=("${name/binary/base}")
    say "fetching ${packages[*]}"
    mkdir -p "$CACHE/kernels"
    work=$(mktemp -d "$CACHE/kernels/.fetch.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    (cd "$work" && apt-get "${PRIVATE_APT[@]}" download "${packages[@]}" >&2) || die "download failed"
    local package
    for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/tree"; done
    image=$(find "$work/tree" -name 'vmlinuz*' -type f | head -n1)
    config=$(find "$work/tree" \( -path '*/boot/config-*' -o -path '*/modules/*/config' \) -type f | head -n1)
    [[ -n $image && -n $config ]] || die "no image or no config in ${packages[*]}"
    install_kernel "$version" "$image" "$config"
}

kernel_from_path() {
    local image=$1 folder config candidate
    [[ -f $image ]] || die "no such kernel image: $image"
    folder=$(dirname "$image")
    for candidate in "$folder/config-$(basename "$image" | sed 's/^[^-]*-//')" "$folder/config" "$folder/.config" "$folder/../../../.config"; do
        [[ -f $candidate ]] && config=$candidate && break
    done
    [[ -n ${config:-} ]] || die "no config beside $image (looked for config and config-VERSION)"
    # Named by content: the path may hold another kernel tomorrow.
    VERSION=path-$(cat "$image" "$config" | sha256sum | cut -c1-16)
    [[ -e $CACHE/kernels/$VERSION/release ]] || with_lock "kernel-$VERSION" install_kernel "$VERSION" "$image" "$config"
}

case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    --seed)
        (($# == 4)) || usage_error "--seed takes VERSION IMAGE CONFIG"
        [[ -e $CACHE/kernels/$2/release ]] || with_lock "kernel-$2" install_kernel "$2" "$3" "$4"
        exit 0
        ;;
    '' | -*) usage_error "which kernel?" ;;
esac

VERSION=$1
if [[ $VERSION == */* ]]; then
    kernel_from_path "$VERSION"
elif [[ ! $VERSION =~ ^[0-9]+\.[0-9]+ ]]; then
    usage_error "neither a kernel version nor a path: $VERSION"
elif [[ ! -e $CACHE/kernels/$VERSION/release ]]; then
    if [[ $VERSION == 6.12.* ]]; then
        "$REPO/scripts/build-kernel.sh" "$VERSION"
    else
        with_lock "kernel-$VERSION" fetch_debian_kernel "$VERSION"
    fi
fi
printf '%s\n' "$CACHE/kernels/$VERSION"
