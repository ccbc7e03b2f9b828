#!/usr/bin/env bash
# Three guests as a fleet: each writes its figures for node_exporter's textfile collector, a
# Prometheus scrapes them, and the alert for missed deadlines fires for the one guest that has
# more work than fits (docs/guide/watch.md). Then Prometheus is asked all that the dashboard asks.
#
#   scripts/fleet.sh [OPTION]...
#
#   --kernel V     as scripts/vm takes it (default: 6.18.15)
#   --program P    the scx_temponet to take along (default: the release build)
#   --timeout S    seconds until the alert has to fire (default: 900)
#   --keep         go on until Ctrl-C, to look at http://127.0.0.1:19090
#   --data DIR     keep what Prometheus stored, the guests' figures and the logs there
#
# Prometheus and node_exporter are Debian's, unpacked into the cache; nothing is installed. All
# listen on 127.0.0.1 only. A guest's figures come through its console, as guests have no network.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

PROMETHEUS=127.0.0.1:19090
FIRST_PORT=19101
GUESTS=(fits fits-too overloaded)

kernel=6.18.15 limit=900 keep='' data='' program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --program | --timeout | --data) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernel=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --timeout) [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "--timeout: not a number of seconds: $2"; limit=$2; shift 2 ;;
        --keep) keep=1; shift ;;
        --data) data=$(realpath -m -- "$2"); shift 2 ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
need_packages curl python3

tools=$("$REPO/scripts/setup.sh" prometheus)
"$tools/usr/bin/promtool" test rules "$REPO/packaging/prometheus/alerts_test.yml"

work=$(mktemp -d) helpers=()
clean_up() {
    kill "${helpers[@]}" 2>/dev/null || true
    wait || true
    if [[ -n $data ]]; then mkdir -p "$data" && cp -r "$work/." "$data"; fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT

# keep_figures FILE: each page of figures that a guest prints, whole.
keep_figures() {
    local line
    while IFS= read -r line; do
        case $line in
            '=== figures') : >"$1.new" ;;
            '=== end') mv "$1.new" "$1" ;;
            *) printf '%s\n' "$line" >>"$1.new" ;;
        esac
    done
}

targets=''
for i in "${!GUESTS[@]}"; do
    name=${GUESTS[i]} port=$((FIRST_PORT + i)) folder=$work/${GUESTS[i]}
    mkdir "$folder"
    load=fits
    [[ $name == overloaded ]] && load=overload
    # By a clock that this machine's other work cannot disturb.
    "$REPO/scripts/vm" --kernel "$kernel" --program "$program" --mode icount --cpus 1 --no-fma \
        --timeout $((limit + 600)) --add "$REPO/scripts/guest/fleet.sh:/vm/fleet" -- bash /vm/fleet "$load" \
        > >(keep_figures "$folder/scx_temponet.prom") 2>"$work/$name.log" &
    helpers+=($!)
    "$tools/usr/bin/prometheus-node-exporter" --web.listen-address="127.0.0.1:$port" --collector.disable-defaults \
        --collector.textfile --collector.textfile.directory="$folder" >"$work/$name-exporter.log" 2>&1 &
    helpers+=($!)
    targets+="      - { targets: ['127.0.0.1:$port'], labels: { instance: $name } }"$'\n'
done
cat >"$work/prometheus.yml" <<YAML
global: { scrape_interval: 5s, evaluation_interval: 5s }
rule_files: ['$REPO/packaging/prometheus/alerts.yml']
scrape_configs:
  - job_name: node
    static_configs:
$targets
YAML
"$tools/usr/bin/promtool" check config "$work/prometheus.yml"
"$tools/usr/bin/prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --web.listen-address="$PROMETHEUS" >"$work/prometheus.log" 2>&1 &
helpers+=($!)

# ask QUERY: the instances and values that Prometheus answers with; nothing before it is up.
ask() {
    local answer
    answer=$(curl -fsS --get "http://$PROMETHEUS/api/v1/query" --data-urlencode "query=$1" 2>/dev/null) || return 0
    python3 -c '
import json, sys
for row in json.load(sys.stdin)["data"]["result"]:
    print(row["metric"].get("instance", "-"), row["value"][1])' <<<"$answer" | sort
}

firing() { ask 'ALERTS{alertname="ScxTemponetDeadlinesMissed",alertstate="firing"}' | cut -d' ' -f1; }

told=''
until ((SECONDS > limit)) || grep -qx overloaded <<<"$(firing || true)"; do
    if [[ -z $told ]] && (($(ask 'scx_temponet_load_time_seconds' | wc -l) == ${#GUESTS[@]})); then
        told=1
        say "after $SECONDS s Prometheus has the figures of all three guests"
    fi
    sleep 5
done
for file in "$work"/*/scx_temponet.prom; do "$tools/usr/bin/promtool" check metrics <"$file"; done
say "declared deadlines since load, missed of all:"
ask 'scx_temponet_deadlines_missed_total{class="declared"}' | while read -r name missed; do
    met=$(ask "scx_temponet_deadlines_met_total{class=\"declared\",instance=\"$name\"}" | cut -d' ' -f2)
    printf '  %-12s %s of %s\n' "$name" "$missed" "$((missed + met))"
done
# The questions of the dashboard, with what Grafana would put in.
unanswered=0 questions=0
while IFS= read -r question; do
    questions=$((questions + 1))
    [[ -n $(ask "$question") ]] || { unanswered=$((unanswered + 1)); say "no answer to $question"; }
done < <(python3 -c '
import json, sys
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel.get("targets", []):
        question = target["expr"].replace("$instance", ".*")
        print(question.replace("$__rate_interval", "1m").replace("$__range", "5m"))' "$REPO/packaging/grafana/scx_temponet.json")
say "Prometheus answers $((questions - unanswered)) of $questions questions of the dashboard"
fired=$(firing)
say "the alert fires for: ${fired:-nobody}"
[[ -z $keep ]] || { say "http://$PROMETHEUS until Ctrl-C"; sleep infinity; }
[[ $fired == overloaded ]] && ((unanswered == 0))
