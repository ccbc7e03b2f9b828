#!/usr/bin/env bash
# Builds the Debian package: target/debian/scx-temponet_VERSION-REVISION_ARCHITECTURE.deb.
# Sets up what it needs first; cargo-deb goes into the cache. Prints the package's path.
#
#   scripts/package.sh [--revision N] [--program P]
#
#   --revision N   the package's revision, where the same version is packaged anew (default: 1)
#   --program P    package this scx_temponet instead of building one
#
# DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools. The package is made
# for the release of Debian that this runs on, and later ones.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

CARGO_DEB_VERSION=3.8.0
# A package of more is refused: nobody asked for debug information.
MOST_BYTES=$((15 << 20))

revision=1 program=''
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --revision | --program) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --revision) [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "--revision: not a number: $2"; revision=$2; shift 2 ;;
        --program) [[ -x $2 ]] || usage_error "--program: no such program: $2"; program=$(realpath -- "$2"); shift 2 ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done
cd "$REPO"
scripts/setup.sh build
need_packages dpkg-dev

cargo_deb=$CACHE/cargo-deb/$CARGO_DEB_VERSION
install_cargo_deb() {
    [[ ! -x $cargo_deb/bin/cargo-deb ]] || return 0
    say "building cargo-deb $CARGO_DEB_VERSION"
    cargo install --quiet --locked --root "$cargo_deb" --version "$CARGO_DEB_VERSION" cargo-deb >&2
}
with_lock cargo-deb install_cargo_deb

version=$(sed -n '0,/^version = "\(.*\)"$/s//\1/p' Cargo.toml)
maintainer="${DEBFULLNAME:-scx_temponet authors} <${DEBEMAIL:-scx_temponet@example.org}>"
work=target/package
mkdir -p "$work"

# The same page for the same commit.
changed=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
cat >"$work/changelog" <<CHANGELOG
scx-temponet ($version-$revision) unstable; urgency=medium

  * /usr/share/doc/scx-temponet/NEWS.md says what is new.

 -- $maintainer  $(date -R -u -d "@$changed")
CHANGELOG

say "man pages and completions"
cargo run --quiet --locked --profile quick --example manual -- "$work" >&2

if [[ -z $program ]]; then
    say "the program"
    cargo build --quiet --locked --release >&2
    program=target/release/scx_temponet
fi
# In a target folder of its own, stripped, so that the program with its debug information stays.
mkdir -p "$work/target/release"
strip --strip-all -o "$work/target/release/scx_temponet" "$program"

CARGO_TARGET_DIR=$REPO/$work/target "$cargo_deb/bin/cargo-deb" deb --quiet --no-build --no-strip --no-separate-debug-symbols --locked \
    --deb-revision "$revision" --maintainer "$maintainer" --output target/debian >&2
package=$(ls -t target/debian/scx-temponet_"$version-$revision"_*.deb | head -n 1)
size=$(stat -c %s "$package")
((size <= MOST_BYTES)) || die "$package has $size bytes, more than $MOST_BYTES"
say "$((size >> 10)) KiB"
realpath -- "$package"
