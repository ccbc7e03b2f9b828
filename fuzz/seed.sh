#!/usr/bin/env bash
# Puts first inputs for every fuzz target into a folder (default: fuzz/corpus): files of
# this repository, workloads that come with rt-app, and what fuzzing came upon before.
#
#   fuzz/seed.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
corpus=${1:-fuzz/corpus}
mkdir -p "$corpus"/{rules,task_set,rtapp_workload,rtapp_log,model,model_metadata,hint,ring,accounts,answers,case,scrape}

# The examples of the manual, one file each.
awk -v out="$corpus/rules" '/^```toml/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (out "/manual-" n ".toml") }' docs/guide/rules.md
printf '[[rule]]\ncgroup = "a*"\nclass = "background"\n' >"$corpus/rules/background.toml"
printf '[[rule]]\ncomm = "x"\nruntime = "10us"\ndeadline = "99.5us"\nperiod = "100us"\ncriticality = 3\n' >"$corpus/rules/all.toml"

# The first byte chooses format and policy.
sets=$(mktemp -d)
trap 'rm -rf "$sets"' EXIT
program=${PROGRAM:-target/release/scx_temponet}
for workload in $("$program" sim --list | awk '/^  [a-z]/ { print $1 }'); do
    for format in toml json; do
        # Not everything in the list is a workload.
        "$program" sim -w "$workload" -k 1 -p edf -n 3 --horizon 50ms --save "$sets/$workload.$format" >/dev/null 2>&1 || continue
        { [[ $format == toml ]] && printf '\0' || printf '\3'; cat "$sets/$workload.$format"; } >"$corpus/task_set/$workload-$format"
    done
done

cp tests/rtapp/*.json "$corpus/rtapp_workload/"
find /usr/share/doc/rt-app/examples -name '*.json' -exec cp {} "$corpus/rtapp_workload/" \; 2>/dev/null || true
for log in tests/rtapp/logs/*.log; do head -n 12 "$log" >"$corpus/rtapp_log/$(basename "$log")"; done
{ head -n 8 tests/rtapp/logs/rt-app-fast-0.log; printf '\0'; head -n 8 tests/rtapp/logs/rt-app-slow-1.log; } >"$corpus/rtapp_log/two"

cp models/temponet.onnx "$corpus/model/"
printf '1\0multiset\0name\0\0\0null\0null' >"$corpus/model_metadata/plain"
# Tokenizer, shape and distilled table as they stand in the shipped model.
metadata() { strings -n 20 models/temponet.onnx | grep -o "{.*\"$1\".*}" | head -n 1; }
printf '\0\0\0%s\0%s\0null\0null' "$(metadata edges_ns)" "$(metadata width)" >"$corpus/model_metadata/shipped"
printf '\0\0\0\0\0\0\0%s' "$(metadata scores)" >"$corpus/model_metadata/distilled"
# Short ones too, of which the fuzzer makes more: the shipped table by default, and one too small.
printf '\0\0\0\0\0\0\0' >"$corpus/model_metadata/shipped-distilled"
printf '\0\0\0\0\0\0\0{"slack_bins":37,"work_bins":14,"contexts":1,"seed":1,"scores":[-1,32767]}' >"$corpus/model_metadata/small-table"

# struct temponet_request of include/temponet_hint.h: set, clear, get.
request() {
    printf HNPT
    printf %b "\\x01\\x00\\x0$1\\x00\\x01\\x02\\x00\\x00\\x00\\x00\\x00\\x00" \
        '\x40\x42\x0f\x00\x00\x00\x00\x00' '\x80\x96\x98\x00\x00\x00\x00\x00' \
        '\x00\x2d\x31\x01\x00\x00\x00\x00' '\x01\x00\x00\x00\x01\x00\x00\x00'
}
for op in 1 2 3; do request $op >"$corpus/hint/request-$op"; done
printf '1.5ms' >"$corpus/hint/duration"

# Records full of zeros and of small numbers; the fuzzer knows their length from these.
head -c 4096 /dev/zero >"$corpus/ring/zeros"
head -c 4096 /dev/zero | tr '\0' '\1' >"$corpus/ring/ones"

printf 'ann:100000:65536\n1001:165536:65536\n\0root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n' >"$corpus/accounts/two-users"
printf '\0@compare {"begin":{"id":3}}\n@compare {"failed":{"id":3,"why":"no"}}\n' >"$corpus/answers/lines"
printf '\1{"version":1,"machine":{"kernel":"6.18","cpus":[1],"calibration_ns":188},"runs":[],"notes":[]}' >"$corpus/answers/results"
cp docs/measurements/cases/*.toml "$corpus/case/"
printf 'GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n' >"$corpus/scrape/openmetrics"
printf 'POST / HTTP/1.1\r\n\r\n' >"$corpus/scrape/post"

for archive in fuzz/corpora/*.txz; do tar -xJf "$archive" -C "$corpus"; done
find "$corpus" -type f -empty -delete
