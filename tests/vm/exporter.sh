#!/usr/bin/env bash
# The exporter that comes with scx_stats, unchanged, against a loaded scheduler in a guest for a
# minute; and what --metrics writes there, by promtool.
#
#   tests/vm/exporter.sh [--kernel V] [--program P] [--mode M]
#
#   --kernel V     as scripts/vm takes it (default: 6.18.15)
#   --program P    the scx_temponet to test (default: the release build)
#   --mode M       as scripts/vm takes it: fast or icount (default: fast)
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

kernel=6.18.15 mode=fast program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --program | --mode) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernel=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --mode) mode=$2; shift 2 ;;
        *) usage_error "unknown option: $1" ;;
    esac
done
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
need_packages python3 python3-prometheus-client
promtool=$("$REPO/scripts/setup.sh" prometheus)/usr/bin/promtool

# It lies beside the library that is built in here.
cd "$REPO"
library=$(cargo metadata --locked --format-version 1 | python3 -c '
import json, pathlib, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == "scx_stats":
        print(pathlib.Path(package["manifest_path"]).parent)')
exporter=$library/scripts/scxstats_to_openmetrics.py
[[ -s $exporter ]] || die "scx_stats has no exporter any more: $exporter"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Debian's own, which the client library was installed for.
python=$(readlink -f /usr/bin/python3)
libraries=()
while read -r library; do libraries+=(--add "$library:$library"); done < <(
    { ldd "$python"; find /usr/lib/python3*/lib-dynload -name '*.so' -exec ldd {} + 2>/dev/null; } | grep -o '/[^ ]*\.so[^ ]*' | grep -v ':$' | sort -u
)
version=$(basename "$python")
# The client library, and what it is made with.
modules=()
for module in prometheus_client decorator.py; do
    modules+=(--add "/usr/lib/python3/dist-packages/$module:/usr/lib/python3/dist-packages/$module")
done
"$REPO/scripts/vm" --kernel "$kernel" --program "$program" --mode "$mode" --no-fma --mem 2G --timeout 1800 --out "$work/out" \
    --add "$exporter:/vm/exporter.py" --add "$python:/usr/bin/python3" --add "/usr/lib/$version:/usr/lib/$version" \
    "${modules[@]}" \
    "${libraries[@]}" --add "$REPO/tests/vm/exporter/in_guest.sh:/vm/exporter" -- bash /vm/exporter
"$promtool" check metrics <"$work/out/figures.prom"
grep -q '^scx_temponet_class_met{class="declared"}' "$work/out/exported.txt" || die "the exporter has no deadlines"
grep -q '^scx_temponet_agent_decisions{policy="temponet"}' "$work/out/exported.txt" || die "the exporter has no agent"
printf 'PASS  exporter: %d lines a look; --metrics: %d lines\n' \
    "$(grep -c '^scx_temponet_' "$work/out/last.txt")" "$(grep -c '^scx_temponet_' "$work/out/figures.prom")"
