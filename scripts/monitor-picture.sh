#!/usr/bin/env bash
# Records the monitor in a guest, and draws docs/pictures/monitor.svg from what its terminal
# showed: three declared tasks that fit on one CPU, a fourth for which there is no room, and
# the end of that.
#
#   scripts/monitor-picture.sh [OPTION]...
#
#   --size COLUMNSxROWS   of the recording (default: 100x24)
#   --kernel V            as scripts/vm takes it (default: 6.18.15)
#   --program P           the scx_temponet to record (default: the release build)
#   --keep FOLDER         what the terminal showed, as text: a file per second, and the
#                         screen at 70x20, 100x30 and 200x60 with its keys tried
#   --no-picture          leave docs/pictures/monitor.svg as it is
set -euo pipefail
. "$(dirname "$0")/lib.sh"

size=100x24 kernel=6.18.15 program=$REPO/target/release/scx_temponet keep='' picture=1
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --no-picture) picture=''; shift ;;
        --size | --kernel | --program | --keep) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --size) [[ $2 =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || usage_error "--size: not COLUMNSxROWS: $2"; size=$2; shift 2 ;;
        --kernel) kernel=$2; shift 2 ;;
        --program) program=$2; shift 2 ;;
        --keep) keep=$2; shift 2 ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done
[[ -x $program ]] || die "no $program: build it first (scripts/build.sh)"
need_packages tmux python3

tmux=$(command -v tmux)
mapfile -t files < <(
    printf -- '--add\n%s\n' "$tmux:/usr/bin/tmux" /usr/lib/locale/C.utf8:/usr/lib/locale/C.utf8
    ldd "$tmux" | sed -n 's|.*=> \(/[^ ]*\).*|--add\n\1:\1|p'
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A clock that counts instructions: what is shown does not depend on this machine.
"$REPO/scripts/vm" --kernel "$kernel" --mode icount --cpus 1 --no-fma --timeout 1800 --program "$program" --out "$work/out" \
    "${files[@]}" --add "$REPO/scripts/guest/measure.sh:/vm/measure" --add "$REPO/scripts/guest/monitor.sh:/vm/monitor" \
    -- bash /vm/monitor "${size%x*}" "${size#*x}" ${keep:+sizes}
if [[ -n $keep ]]; then
    mkdir -p "$keep"
    cp -r "$work"/out/. "$keep/"
fi
[[ -n $picture ]] || exit 0
about="scx_temponet monitor on Linux $kernel in an emulated guest; scripts/monitor-picture.sh, $(date -u +%F)"
python3 "$REPO/scripts/terminal-svg.py" --size "$size" --about "$about" --still "$(<"$work/out/still")" \
    "$work"/out/frames/* >"$work/monitor.svg"
mv "$work/monitor.svg" "$REPO/docs/pictures/monitor.svg"
