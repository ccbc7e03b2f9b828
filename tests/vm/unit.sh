#!/usr/bin/env bash
# Starts the packaged systemd unit under this machine's systemd, as the first process of
# a guest, with ONNX Runtime, and tries every restriction in it.
#
#   tests/vm/unit.sh [--kernel V]... [--program P]
#
#   --kernel V     only this one (default: every kernel we promise)
#   --program P    the scx_temponet to test (default: the release build)
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

kernels=() program=$REPO/target/release/scx_temponet
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --program) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernels+=("$2"); shift 2 ;;
        --program) program=$2; shift 2 ;;
        *) usage_error "unknown option: $1" ;;
    esac
done
((${#kernels[@]})) || kernels=("${KERNELS[@]}")
[[ -x $program ]] || die "no $program: build it first (cargo build --release)"
need_packages systemd build-essential
mapfile -t ort < <(onnxruntime_in_guest)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

here=$REPO/tests/vm/unit
cc -O1 -Wall -Wextra -o "$work/probe" "$here/probe.c"
# What the guest's own init does once all is mounted.
sed -n '/^port() {/,$p' "$REPO/scripts/guest/init" >"$work/main"
[[ -s $work/main ]] || die "scripts/guest/init has no port() any more"

adds=(
    --add "$here/init:/init" --add "$work/main:/vm/main" --add "$work/probe:/usr/bin/probe"
    --add "$here/in_guest.sh:/vm/unit" --add "$here/test.service:/etc/systemd/system/test.service"
    --add "$REPO/packaging/scx_temponet.service:/etc/systemd/system/scx_temponet.service"
    --add "$REPO/models/temponet.onnx" "${ort[@]}"
)
programs=(/lib/systemd/systemd /lib/systemd/systemd-journald /bin/systemctl /bin/journalctl)
for file in "${programs[@]}"; do adds+=(--add "$file:$file"); done
while read -r library; do adds+=(--add "$library:$library"); done < <(
    ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*' | grep -v ':$' | sort -u
)
for unit in {basic,sysinit,sockets,slices,paths,timers,local-fs,swap,shutdown,umount,final}.target \
    systemd-journald.{service,socket}; do
    adds+=(--add "/lib/systemd/system/$unit:/lib/systemd/system/$unit")
done

failed=0
for kernel in "${kernels[@]}"; do
    printf '== kernel %s\n' "$kernel"
    # Once more where it was the emulator (scripts/vm).
    for attempt in 1 2 3; do
        "$REPO/scripts/vm" --kernel "$kernel" --program "$program" --no-fma --mem 2G --timeout 900 "${adds[@]}" \
            -- bash /vm/unit && status=0 || status=$?
        ((status == 122 && attempt < 3)) || break
    done
    if ((status)); then
        printf 'FAIL  unit  (status %s)\n' "$status"
        failed=1
    else
        printf 'PASS  unit\n'
    fi
done
exit $failed
