#!/usr/bin/env bash
# Looks at pages of `replay --html` in a real browser, without a screen: that they
# show what they should at 390, 768 and 1280 px, in light and dark; that nothing is cut
# off; that the controls work; and that nothing is ever requested. SCX_TEMPONET names
# another program than the release build.
#
#   scripts/check-report.sh [-k FOLDER]     -k: keep the page and its pictures there
set -euo pipefail
. "$(dirname "$0")/lib.sh"
keep=
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        -k) keep=${2:?-k needs a folder}; shift 2 ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done

need_packages chromium python3
cd "$REPO"
program=${SCX_TEMPONET:-}
if [[ -z $program ]]; then
    cargo build --locked --release -q
    program=target/release/scx_temponet
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# make PAGE ARGUMENT…
make() {
    local page=$1
    shift
    "$program" replay "$@" --html "$work/$page.html" >/dev/null 2>"$work/warnings" ||
        die "replay failed: $(tail -n 1 "$work/warnings")"
}
make report tests/rtapp/overload.json --critical motor
make single tests/rtapp/one-cpu.json --policy edf
make logs tests/rtapp/logs
pages=(report single logs)
cp tests/report/harness.html "$work/"
# What a page must not do, to see that it would be noticed.
printf '<!doctype html><img src="http://127.0.0.1:9/x">' >"$work/guilty.html"

# A profile per run, or the browser would hand over to one that is still there. No
# name resolves, so that the browser's own curiosity does not leave either.
browse() {
    local name=$1
    shift
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --host-resolver-rules='MAP * ~NOTFOUND' --allow-file-access-from-files --hide-scrollbars \
        --virtual-time-budget=4000 --user-data-dir="$work/profile-$name" "$@" 2>"$work/$name.err" ||
        die "chromium failed: $(tail -n 1 "$work/$name.err")"
}

# look PAGE WIDTH COLOURS: uses the page and shows what was found.
look() {
    local name=$1-$2-$3 scheme=1
    [[ $3 == light ]] || scheme=0
    browse "$name" --blink-settings="preferredColorScheme=$scheme" --window-size="$(($2 > 500 ? $2 : 500)),5400" \
        --dump-dom "file://$work/harness.html#$1,$2,$3" >"$work/dom-$name.html"
    sed -n '/<pre id="found">/,/<\/pre>/p' "$work/dom-$name.html" | sed 's/<[^>]*>//g' >"$work/found-$name"
    grep -q '^ok ' "$work/found-$name" || die "$1 was not checked at $2 px, $3"
    if grep FAILED "$work/found-$name"; then
        die "$1 fails at $2 px, $3"
    fi
    printf 'ok %s at %s px, %s: %s checks\n' "$1" "$2" "$3" "$(grep -c '^ok ' "$work/found-$name")"
}

for page in "${pages[@]}"; do
    for width in 390 768 1280; do
        for colours in light dark; do
            look "$page" "$width" "$colours"
        done
    done
done

for page in "${pages[@]}" guilty; do
    browse "net-$page" --log-net-log="$work/net-$page.json" --dump-dom "file://$work/$page.html" >/dev/null
done
python3 scripts/page-requests.py "$work/net-guilty.json" >/dev/null && die "the check for requests sees none where there is one"
for page in "${pages[@]}"; do
    python3 scripts/page-requests.py "$work/net-$page.json" || die "$page requests something"
done
printf 'ok nothing is requested\n'

if [[ -n $keep ]]; then
    mkdir -p "$keep"
    for width in 390 768 1280; do
        for colours in light dark; do
            scheme=1
            [[ $colours == light ]] || scheme=0
            browse "$colours-$width" --window-size="$((width > 500 ? width : 500)),5400" \
                --blink-settings="preferredColorScheme=$scheme" \
                --screenshot="$work/$colours-$width.png" "file://$work/harness.html#report,$width,$colours"
        done
    done
    cp "$work"/report.html "$work"/*.png "$keep/"
    say "the page and its pictures are in $keep"
fi
