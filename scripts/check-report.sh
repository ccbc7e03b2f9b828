#!/usr/bin/env bash
# Looks at a page of `replay --html` in a real browser, without a screen: that it
# shows what it should, on a desk and on a phone, in light and dark; that its
# controls work; and that nothing is ever requested.
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
"$program" replay tests/rtapp/overload.json --critical motor --html "$work/report.html" >/dev/null 2>"$work/warnings" ||
    die "replay failed: $(tail -n 1 "$work/warnings")"
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

for width in 1280 390; do
    browse "use-$width" --dump-dom "file://$work/harness.html#$width" >"$work/dom-$width.html"
    sed -n '/<pre id="found">/,/<\/pre>/p' "$work/dom-$width.html" | sed 's/<[^>]*>//g' >"$work/found-$width"
    cat "$work/found-$width"
    grep -q '^ok ' "$work/found-$width" || die "the page was not checked at $width px"
    ! grep -q FAILED "$work/found-$width" || die "the page fails at $width px"
done

for page in report guilty; do
    browse "net-$page" --log-net-log="$work/net-$page.json" --dump-dom "file://$work/$page.html" >/dev/null
done
python3 scripts/page-requests.py "$work/net-guilty.json" >/dev/null && die "the check for requests sees none where there is one"
python3 scripts/page-requests.py "$work/net-report.json" || die "the page requests something"
printf 'ok nothing is requested\n'

if [[ -n $keep ]]; then
    mkdir -p "$keep"
    for width in 1280 390; do
        browse "light-$width" --window-size="$width,3400" --screenshot="$work/light-$width.png" "file://$work/harness.html#$width"
        browse "dark-$width" --window-size="$width,3400" --blink-settings=preferredColorScheme=0 \
            --screenshot="$work/dark-$width.png" "file://$work/harness.html#$width"
    done
    cp "$work"/report.html "$work"/*.png "$keep/"
    say "the page and its pictures are in $keep"
fi
