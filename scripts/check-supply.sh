#!/usr/bin/env bash
# What this program is made of: that Cargo.lock has a checksum for every crate, what cargo-deny
# says of them (known vulnerabilities, licences, sources: deny.toml), and how much unsafe code
# is ours.
#
#   scripts/check-supply.sh
#
# Where cargo-deny, or the database of advisories, is not here and cannot be fetched, that part
# is left out, and said.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    '') ;;
    -h | --help) print_manual; exit 0 ;;
    *) usage_error "takes no argument: $1" ;;
esac
cd "$REPO"

# Blocks, functions, traits and implementations of ours. Fewer is better: after a change that
# takes some away, lower it.
MOST_UNSAFE=211

bad=0
complain() { say "$*"; bad=1; }

# A crate of the registry has a checksum; our own has no source.
unchecked=$(awk '/^\[\[package\]\]/ { name = source = "" }
    /^name = / { name = $3 }
    /^source = / { source = $3 }
    /^checksum = / { source = "" }
    /^$/ && source { print name, source }
    END { if (source) print name, source }' Cargo.lock)
[[ -z $unchecked ]] || complain "Cargo.lock has no checksum for: $unchecked"

# That each block says why it is sound is clippy's business (Cargo.toml).
unsafe=$(grep -rhoE --include='*.rs' '\bunsafe (\{|fn|impl|trait|extern)' src | wc -l)
printf '%s places in src/ are unsafe, %s at most\n' "$unsafe" "$MOST_UNSAFE"
((unsafe <= MOST_UNSAFE)) || complain "there is more unsafe code than there was: do without, or raise MOST_UNSAFE and say why"

if ! command -v cargo-deny >/dev/null; then
    printf 'NOT CHECKED: advisories and licences of the crates (cargo-deny is not installed)\n'
else
    cargo deny --all-features check licenses sources bans || bad=1
    # The database is fetched where it can be, else the one of the last time is taken.
    if cargo deny fetch db >/dev/null 2>&1 || [[ -d ${CARGO_HOME:-$HOME/.cargo}/advisory-dbs ]]; then
        cargo deny --all-features check --disable-fetch advisories || bad=1
    else
        printf 'NOT CHECKED: advisories of the crates (their database cannot be reached)\n'
    fi
fi
((bad == 0))
