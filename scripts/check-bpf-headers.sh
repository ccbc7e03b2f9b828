#!/usr/bin/env bash
# Compiles each header of bpf/ by itself: none may lean on what another file
# included before it. Needs a build of the program, which leaves the kernel's and
# sched_ext's headers behind; $CARGO_TARGET_DIR says where, else target/.
#
#   scripts/check-bpf-headers.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
case ${1:-} in
    '') ;;
    -h | --help) print_manual; exit 0 ;;
    *) usage_error "takes no argument: $1" ;;
esac
cd "$REPO"

# The newest of the folders that match.
newest() { ls -dt "$@" 2>/dev/null | head -n 1; }

target=${CARGO_TARGET_DIR:-target}
headers=$(newest "$target"/*/build/scx_temponet-*/out/scx_utils-bpf_h) || true
[[ -n $headers ]] || die "no build of scx_temponet under $target: run cargo build first"
libbpf=$(newest "$target"/*/build/libbpf-sys-*/out/include) || true
[[ -n $libbpf ]] || die "no build of libbpf-sys under $target: run cargo build first"
case $(uname -m) in
    x86_64) arch=x86 ;;
    aarch64) arch=arm64 ;;
    *) die "no kernel headers for $(uname -m)" ;;
esac

# A header's functions are for others to use: that it does not use them itself is no fault.
compiles() {
    printf '#include "%s"\n' "$1" |
        "$BPF_CLANG" -x c -fsyntax-only -O2 -Wall -Werror -Wno-unused-function \
            -Wno-compare-distinct-pointer-types -target bpf -mcpu=v4 \
            "-D__TARGET_ARCH_$arch" "-D__SCX_TARGET_ARCH_$arch" \
            -Ibpf -I"$headers/arch/$arch" -I"$headers" -I"$headers/bpf-compat" -I"$libbpf" -
}

passed=0 failed=0
for header in bpf/*.bpf.h; do
    if compiles "${header##*/}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "$header does not compile by itself"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
