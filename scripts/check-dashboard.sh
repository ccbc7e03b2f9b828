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

python=$(pinned_python grafana-schema "grafana_foundation_sdk")
"$python" "$REPO/scripts/check-dashboard.py" "$REPO/packaging/grafana/scx_temponet.json"
