#!/usr/bin/env bash
# Runs scx_temponet: on this machine where its kernel has sched_ext, else in a
# guest, where the same deadline workload runs under the kernel's own scheduler
# and under ours. Sets up what it needs first.
#
#   scripts/run.sh [ARGUMENT]...     arguments go to scx_temponet (not in the guest)
#   scripts/run.sh --guest           the guest even where sched_ext is there
set -euo pipefail
. "$(dirname "$0")/lib.sh"

guest=0
case ${1:-} in
    -h | --help) print_manual; exit 0 ;;
    --guest) guest=1; shift ;;
esac
cd "$REPO"
scripts/build.sh

if [[ -d /sys/kernel/sched_ext && $guest == 0 ]]; then
    say "loading scx_temponet; Ctrl-C brings the kernel's own scheduler back"
    as_root target/release/scx_temponet "$@"
    exit
fi

(($# == 0)) || usage_error "this kernel has no sched_ext, so there is nothing to pass $1 to"
((guest)) || say "this kernel ($(uname -r)) has no sched_ext, so this shows it at work in a guest"
scripts/setup.sh ort >/dev/null
report=$(mktemp)
trap 'rm -f "$report"' EXIT
# show CASE SENTENCE
show() {
    say "$2"
    scripts/compare "$1" --cpus 1 --schedulers eevdf,temponet --repeats 1 --json >"$report"
    python3 - "$report" <<'PYTHON'
import json, sys

report = json.load(open(sys.argv[1]))
names = {"eevdf": "Linux's own (EEVDF)", "temponet": "scx_temponet"}
print(f"\n{'scheduler':<20} {'jobs':>5} {'missed':>7} {'mean response':>14} {'99th percentile':>16}")
for row in report["rows"]:
    print(f"{names[row['scheduler']]:<20} {row['released']:>5} {row['missed']:>7} "
          f"{row['mean_response_ms']:>11.1f} ms {row['p99_response_ms']:>13.1f} ms")
own, ours = report["rows"]
print(f"\nOf {ours['released']} jobs, {own['missed']} missed their deadline under Linux's own scheduler "
      f"and {ours['missed']} under scx_temponet.\n")
PYTHON
}
show one-cpu "three tasks that fit on one CPU: 13 ms of work every 40 ms, 20 every 60, 25 every 100, each due before its next"
show overload "five tasks that do not: 1.3 CPUs' worth of work on one"
