#!/bin/bash
#: mode icount
# compare --live: sets run on a kernel, job by job, under one scheduler after the other; what
# was measured is kept, a scheduler that cannot be loaded is a row that says why, and
# everything is as before in the end.
. "$(dirname "$0")/lib.sh"

export XDG_CACHE_HOME=/tmp/cache
cat >/tmp/cases.toml <<'TOML'
schedulers = ["eevdf", "edf", "scx_nowhere"]
candidate = "edf"
seeds = "1..2"
must = ["edf >= 90", "every edf.settled >= 90"]
[[case]]
name = "light"
horizon = "2s"
[case.tournament]
cores = 1
tasks = 4
hogs = 0
load = [0.4, 0.5]
times = "uniform"
deadlines = "period"
declared = "exactly"
change = "none"
TOML

compare() { scx_temponet compare /tmp/cases.toml --live --no-sim "$@" >/tmp/compare.txt 2>/tmp/compare.err; }
kept() { find /tmp/cache -name '*.json' | wc -l; }

status=0
compare --json || status=$?
# One of the schedulers is nowhere.
assert_eq "$status" 1 "status of compare: $(tail -n 2 /tmp/compare.err)"
assert_eq "$(kept)" 4 "results that are kept"
grep -q 'scx_nowhere is not installed' /tmp/compare.txt || fail "nothing says why scx_nowhere has no figures"
assert_eq "$(grep -c '"holds": true' /tmp/compare.txt)" 2 "conditions that hold: $(grep -A9 '"verdicts"' /tmp/compare.txt)"
grep -q '"loaded": "temponet' /tmp/compare.txt || fail "the report does not name the scheduler that was loaded"
wait_for 30 scx_is disabled || fail "sched_ext is still $(scx_state)"
[[ -z $(pidof rt-app scx_temponet) ]] || fail "still running: $(pidof rt-app scx_temponet)"

# The second time nothing is measured.
before=$(cut -d. -f1 /proc/uptime)
compare --against eevdf,edf || fail "the second comparison: $(tail -n 2 /tmp/compare.err)"
(($(cut -d. -f1 /proc/uptime) - before < 10)) || fail "kept results were measured again"
assert_eq "$(kept)" 4 "results that are kept after the second time"
grep -q 'edf against eevdf' /tmp/compare.txt || fail "no summary: $(head -n 5 /tmp/compare.txt)"
