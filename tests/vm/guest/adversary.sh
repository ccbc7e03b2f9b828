#!/bin/bash
# One user means ill: cheats with budgets, declares what can be declared, floods the hint socket,
# declares for other people's tasks and under subordinate ids. Beside it an honest user's
# admitted deadlines are met, a third user's hog runs, and root can always declare.
#: helper cheat
#: helper adversary
#: helper sentinel
#: again icount
. "$(dirname "$0")/lib.sh"

# Arrays and not functions, so that $! is the command and not a shell of root.
user() { printf '%s\n' setpriv --reuid="$1" --regid="$1" --clear-groups; }
mapfile -t honest < <(user 1001)
mapfile -t evil < <(user 65534)
mapfile -t third < <(user 1003)
mapfile -t evil_too < <(user 200005)
printf 'nobody:200000:65536\n' >/etc/subuid

start_scheduler --hint-util-user 0.25
resident_kib() { awk '/^VmRSS:/ { print $2 }' "/proc/$scheduler_pid/status"; }
cpu_ms() { awk '{ print 10 * ($14 + $15) }' "/proc/$1/stat"; }

# Two tasks of 2 ms in every 40, declared with what a slow guest may need.
for i in 1 2; do
    "${honest[@]}" sentinel "/tmp/honest-$i" 40 2000 &
    sentinels+=($!)
done
"${third[@]}" bash -c 'while :; do :; done' &
hog=$!
sleep 1
for pid in "${sentinels[@]}"; do
    "${honest[@]}" scx_temponet hint --runtime 8ms --period 40ms --pid "$pid" || fail "the honest user could not declare"
done
before=$(resident_kib) had=$(cpu_ms $hog) from=${EPOCHREALTIME/[.,]/}

"${evil[@]}" cheat budget 20 16 >/tmp/budget &
abusers=($!)
sleep 1
"${evil[@]}" cheat many 15 400 >/tmp/many &
abusers+=($!)
"${evil[@]}" cheat crowd 15 300 >/tmp/crowd &
abusers+=($!)
"${evil[@]}" adversary hint 15 1 $$ "$scheduler_pid" "${sentinels[@]}" >/tmp/forged &
abusers+=($!)
"${evil_too[@]}" sleep 60 &
other_id=$!
sleep 2

# While all this goes on.
said=$("${evil_too[@]}" scx_temponet hint --runtime 20ms --period 40ms --pid $other_id 2>&1) && fail "a subordinate id has a share of its own"
assert_match "$said" 'user 65534 has declared|too many connections|did not answer' "what the subordinate id was told"
refused=0
for ((i = 0; i < 10; i++)); do
    scx_temponet hint --runtime 1ms --period 50ms --pid $$ || fail "root could not declare, at the $i. time"
    scx_temponet hint --clear --pid $$ || fail "root could not take a declaration back"
    "${evil[@]}" scx_temponet hint --runtime 1ms --period 10ms --pid "${sentinels[0]}" 2>/dev/null || refused=$((refused + 1))
    sleep 1
done
assert_eq "$refused" 10 "declarations for another user's task that were refused"
"${third[@]}" scx_temponet hint --runtime 1ms --period 50ms --pid $hog || fail "a third user could not declare"
"${third[@]}" scx_temponet hint --clear --pid $hog
wait "${abusers[@]}" || true
took=$(((${EPOCHREALTIME/[.,]/} - from) / 1000)) had=$(($(cpu_ms $hog) - had)) after=$(resident_kib)
kill -TERM "${sentinels[@]}"
wait "${sentinels[@]}" || true
kill $hog $other_id
cat /tmp/budget /tmp/many /tmp/crowd /tmp/forged

for i in 1 2; do
    on_time=$(tr ' ' '\n' <"/tmp/honest-$i" | awk -F= '{ v[$1] = $2 } END { if (v["jobs"]) printf "%.1f", 100 * (1 - v["missed"] / v["jobs"]) }')
    assert_ge "$on_time" 95 "percent of the honest user's jobs on time, task $i"
done
assert_ge "$had" $((took * 5 / 100)) "ms that the third user's hog had in $took"
assert_le "$after" $((before + 16 * 1024)) "KiB of memory that the daemon has, from $before"
granted=$(sed -n 's/granted=\([0-9]*\) .*/\1/p' /tmp/budget /tmp/many | awk '{ sum += $1 } END { print sum + 0 }')
assert_ge "$granted" 16 "declarations that the cheat was granted"
assert_le "$granted" 256 "declarations that the cheat was granted"
assert_eq "$(scx_state)" enabled "state"
stop_scheduler
