#!/usr/bin/env bash
# Checks that Grafana's schema knows every field of the dashboard. scripts/fleet.sh asks a
# Prometheus the dashboard's questions.
#
#   scripts/check-dashboard.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
esac
(($# == 0)) || usage_error "takes no arguments"

VENV=$CACHE/grafana-venv

make_venv() {
    "$VENV/bin/python" -c 'import grafana_foundation_sdk' 2>/dev/null && return
    say "installing Grafana's schema for Python"
    python3 -m venv "$VENV"
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: --require-hashes \
        -r "$REPO/scripts/pinned/grafana-schema.txt" >&2
}

need_packages python3 python3-venv ca-certificates
with_lock grafana-venv make_venv
"$VENV/bin/python" "$REPO/scripts/check-dashboard.py" "$REPO/packaging/grafana/scx_temponet.json"
