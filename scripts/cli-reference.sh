#!/usr/bin/env bash
# Renders docs/reference/cli.md and docs/reference/stats.md from the program's own help.
#
#   scripts/cli-reference.sh [BINARY]           writes both files
#   scripts/cli-reference.sh --check [BINARY]   status 1 and the difference where one of them
#                                               is out of date
#
# BINARY is target/release/scx_temponet unless given.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

check=0
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    --check) check=1; shift ;;
    -*) usage_error "unknown option: $1" ;;
esac
(($# < 2)) || usage_error "takes one binary"
binary=${1:-$REPO/target/release/scx_temponet}
[[ -x $binary ]] || usage_error "no program $binary: build it first (cargo build --release)"

# Under its own name, and as wide on every terminal as on none.
program() { (exec -a scx_temponet "$binary" "$@") </dev/null 2>/dev/null | sed 's/ *$//'; }
export COLUMNS=100

block() { printf '```text\n'; "$@"; printf '```\n'; }

commands() { program --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ && $1 != "help" { print $1 }'; }

render_cli() {
    local command
    cat <<'MARKDOWN'
# Command line
This page is made by `scripts/cli-reference.sh` from `--help`. Change the help texts in `src/cli/`, not this page.

MARKDOWN
    printf '## scx_temponet\n'
    block program --help
    for command in $(commands); do
        printf '\n## scx_temponet %s\n' "$command"
        block program "$command" --help
    done
}

render_stats() {
    cat <<'MARKDOWN'
# Statistics
This page is made by `scripts/cli-reference.sh` from `--help-stats`. Change the descriptions in `src/agent/stats.rs` and `src/agent/agent_stats.rs`, not this page.

`--stats TIME` prints these figures as a table while the scheduler runs, `--monitor TIME` those of a scheduler that is loaded already.
`monitor --json` prints all of them, a line of JSON each time. Counters are of the time between two looks unless they say "since load"; with `--since-load` all are since load.

MARKDOWN
    block program --help-stats
}

# put FILE COMMAND: writes what the command prints, or compares it.
put() {
    local file=docs/reference/$1 made
    made=$(mktemp)
    "$2" >"$made"
    if ((check)); then
        if ! diff -u --label "$file" --label "what the program says" "$REPO/$file" "$made"; then
            say "$file is out of date: run scripts/cli-reference.sh"
            stale=1
        fi
        rm -f "$made"
    else
        chmod 644 "$made"
        mv "$made" "$REPO/$file"
    fi
}

stale=0
put cli.md render_cli
put stats.md render_stats
exit "$stale"
