#!/usr/bin/env bash
# scx_loader and scxctl in a guest, as far as they take a scheduler that is not on their list; and
# this scheduler with the options that packaging/scx_loader.toml has for each mode.
#
#   tests/vm/loader.sh [--kernel V] [--program P]
#
#   --kernel V     as scripts/vm takes it (default: 6.18.15)
#   --program P    the scx_temponet to test (default: the release build)
#
# Builds scx_loader and scxctl into the cache.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

VERSION=1.1.3
kernel=6.18.15 program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --program) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernel=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        *) usage_error "unknown option: $1" ;;
    esac
done
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
need_packages dbus-daemon

built=$CACHE/scx_loader/$VERSION
build_loader() {
    [[ ! -x $built/bin/scx_loader || ! -x $built/bin/scxctl ]] || return 0
    say "building scx_loader and scxctl $VERSION"
    cargo install --quiet --locked --root "$built" --version "$VERSION" scx_loader >&2
    cargo install --quiet --locked --root "$built" --version "$VERSION" scxctl >&2
}
with_lock scx_loader build_loader

programs=("$built/bin/scx_loader" "$built/bin/scxctl" /usr/bin/dbus-daemon)
takes=()
for binary in "${programs[@]}"; do takes+=(--add "$binary:/usr/bin/${binary##*/}"); done
while read -r library; do takes+=(--add "$library:$library"); done < <(
    for binary in "${programs[@]}"; do ldd "$binary"; done | grep -o '/[^ ]*\.so[^ ]*' | sort -u
)
"$REPO/scripts/vm" --kernel "$kernel" --program "$program" --no-fma --timeout 900 "${takes[@]}" \
    --add "$REPO/packaging/scx_loader.toml:/vm/scx_loader.toml" \
    --add "$REPO/tests/vm/loader/in_guest.sh:/vm/loader" -- bash /vm/loader
printf 'PASS  loader\n'
