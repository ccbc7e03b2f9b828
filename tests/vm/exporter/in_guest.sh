#!/bin/bash
# Runs in the guest, for tests/vm/exporter.sh.
. /tests/lib.sh

SECONDS_OF_IT=60
write_rivals
scx_temponet --rules /tmp/rules.toml --metrics /tmp/figures.prom >/tmp/scheduler.txt 2>&1 &
scheduler=$!
wait_for 120 scx_is enabled || { cat /tmp/scheduler.txt; fail "not loaded"; }
rt-app /tmp/rivals.json >/dev/null 2>&1 &
workload=$!
PYTHONPATH=/usr/lib/python3/dist-packages timeout -s INT $SECONDS_OF_IT \
    python3 /vm/exporter.py -i 2 >/out/exported.txt 2>/tmp/exporter-says.txt || true
# It tries again after whatever exception; a Ctrl-C is how it ends.
if grep 'retrying' /tmp/exporter-says.txt; then fail "the exporter met an exception"; fi
looks=$(grep -c '^# HELP scx_temponet_idle ' /out/exported.txt) || tail -n 20 /tmp/exporter-says.txt
assert_ge "$looks" 10 "looks of the exporter in $SECONDS_OF_IT s"
awk -v first="$(grep -m 1 '^# HELP' /out/exported.txt)" '$0 == first { page = "" } { page = page $0 "\n" }
    END { printf "%s", page }' /out/exported.txt >/out/last.txt
wait_for 20 grep -q '^scx_temponet_deadlines_met_total' /tmp/figures.prom || fail "no figures"
cp /tmp/figures.prom /out/

# Met and missed are those of --stats to the job. The workload ends first, so that both are of
# the same moment.
kill $workload
sleep 7
of_file() { sed -n "s/^scx_temponet_deadlines_$1_total{class=\"declared\"} //p" /tmp/figures.prom; }
of_status() { scx_temponet status --json | grep -o '"declared":{[^}]*}' | grep -o "\"$1\":[0-9]*" | cut -d: -f2; }
for what in met missed; do
    assert_eq "$(of_file $what)" "$(of_status $what)" "$what in the file and in the stats"
done
printf 'met %s, missed %s, in the file as in the stats; %s looks of the exporter\n' "$(of_file met)" "$(of_file missed)" "$looks"

# What --stats costs with 2,000 tasks that wake up once a second: CPU time of the daemon with and
# without somebody who looks, and of that process.
python3 - <<'PYTHON' &
import threading, time
def nap():
    while True:
        time.sleep(1)
threading.stack_size(65536)
for _ in range(2000):
    threading.Thread(target=nap, daemon=True).start()
time.sleep(600)
PYTHON
tasks=$!
all_napping() { (($(awk '/^Threads:/ { print $2 }' /proc/$tasks/status) > 2000)); }
wait_for 120 all_napping || fail "$(grep Threads /proc/$tasks/status), not 2,000"
sleep 5
cpu_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat"; }
LOOKS=30
before=$(cpu_ms $scheduler)
sleep $LOOKS
alone=$(($(cpu_ms $scheduler) - before))
scx_temponet --monitor 1 >/tmp/looked.txt 2>&1 &
looker=$!
sleep 2
before=$(cpu_ms $scheduler) looker_before=$(cpu_ms $looker)
sleep $LOOKS
served=$(($(cpu_ms $scheduler) - before)) looked=$(($(cpu_ms $looker) - looker_before))
kill $looker $tasks
printf 'statistics once a second with 2,000 tasks, %s s: the daemon used %s ms, before that %s ms; who looked used %s ms\n' \
    $LOOKS $served $alone $looked
kill -INT $scheduler
wait $scheduler
[[ ! -e /tmp/figures.prom ]] || fail "the file was left behind"
