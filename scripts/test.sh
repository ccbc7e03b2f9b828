#!/usr/bin/env bash
# Checks everything: format, lints, unit tests, and the scheduler on the kernels we
# promise, in a guest. Sets up what it needs first.
#
#   scripts/test.sh [--floor]
#
#   --floor    also on the oldest kernel we promise, 6.12, which Debian ships without
#              sched_ext: building it takes 25 CPU minutes. Without this option it is
#              tried where it is in the cache.
#
# Guests take the program of the quick build: a release is the same code with link-time
# optimisation.
#
# A step that fails does not keep the others from being run. The summary at the end says
# what failed, and the status is 1 then.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

floor=0
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --floor) floor=1; shift ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done
cd "$REPO"
kernels=("${KERNELS[@]}")
((floor)) || [[ -e $CACHE/kernels/${KERNELS[0]}/release ]] || kernels=("${KERNELS[@]:1}")
oldest=${kernels[0]} newest=${kernels[-1]}

program=$REPO/target/quick/scx_temponet

# The guest tests that failed, a line each, by tests/vm/run.sh.
red=$(mktemp)
trap 'rm -f "$red"' EXIT
# A shell in the background does not see the key.
trap 'trap "" TERM; kill -TERM 0; summary; exit 130' INT

duration() { if (($1 < 60)); then echo "$1 s"; else printf '%d min %02d s\n' $(($1 / 60)) $(($1 % 60)); fi; }

# step TITLE COMMAND...: leaves its status; while counting, it is only counted.
counting=1 total=0 number=0 failed=0 status=0 built=0 report=()
step() {
    local title=$1 started=$SECONDS
    shift
    if ((counting)); then
        total=$((total + 1))
        return
    fi
    number=$((number + 1))
    printf '\n== step %d of %d, after %s: %s\n' "$number" "$total" "$(duration "$SECONDS")" "$title"
    : >"$red"
    # In a subshell that is no condition, where `set -e` holds.
    set +e
    (set -e; "$@")
    status=$?
    set -e
    if ((status == 0)); then
        report+=("passed   $title, $(duration $((SECONDS - started)))")
        return
    fi
    failed=$((failed + 1))
    report+=("FAILED   $title, $(duration $((SECONDS - started))), status $status")
    mapfile -t -O "${#report[@]}" report < <(sed 's/^/             /' "$red")
    printf -- '-- failed with status %d: %s\n' "$status" "$title"
}

# guest_step TITLE COMMAND...: a step that tests the program. An older build would be
# tested where the new one failed.
guest_step() {
    if ((counting || built)); then
        step "$@"
        return
    fi
    number=$((number + 1))
    failed=$((failed + 1))
    report+=("NOT RUN  $1 (the program was not built)")
}

summary() {
    printf '\n== %d of %d steps in %s, %d failed or not run\n' "$number" "$total" "$(duration "$SECONDS")" "$failed"
    ((${#report[@]} == 0)) || printf '%s\n' "${report[@]}"
    [[ $oldest == "${KERNELS[0]}" ]] || printf 'not tried: Linux %s (--floor builds it and tries it)\n' "${KERNELS[0]}"
}

set_up() {
    scripts/setup.sh build vm
    scripts/setup.sh ort >/dev/null
}

unit_tests() {
    ORT_DYLIB_PATH=$(scripts/setup.sh ort)
    export ORT_DYLIB_PATH
    # rt-app's own examples come with its package; without them the test says so and fails.
    RTAPP_EXAMPLES=/usr/share/doc/rt-app/examples cargo test --locked --profile quick --no-fail-fast
}

# Debian's toolchain has no clippy; the one that rust-toolchain.toml names has.
lints() {
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy --locked --profile quick --all-targets -- -D warnings
    elif [[ -n ${CI:-} ]]; then
        printf 'no clippy here\n' && return 1
    else
        printf 'this Rust toolchain has no clippy: not run\n'
    fi
}

build() { cargo build --locked --profile quick; }

# All of them, whichever fails.
fetch_kernels() {
    local kernel status=0
    for kernel in "${kernels[@]}"; do scripts/kernel.sh "$kernel" >/dev/null || status=1; done
    return "$status"
}

guest_tests() { tests/vm/run.sh --program "$program" --failed "$red" "$@"; }

# What depends little on the kernel is tried on one of them, with one of the backends.
on_oldest() {
    guest_tests --kernel "$oldest" --without replay --without recovery --without agent_swap \
        --without agent_namespace --without dump --without compare --without monitor --without suggest "$@"
}
on_newest() {
    guest_tests --kernel "$newest" --ort --without agent_mirror --without starvation --without yield \
        --without hotplug --without agent_faults --without crowd --without exiting "$@"
}

# Guests in mode icount take one CPU each, and do not feel each other: two at once.
counting_instructions() {
    local other status=0
    on_oldest --mode icount 2>&1 | sed -u "s/^/$oldest  /" &
    other=$!
    on_newest --mode icount 2>&1 | sed -u "s/^/$newest  /" || status=1
    wait "$other" || status=1
    return "$status"
}

# 75: the host stood in the way, three times.
storms() {
    tests/vm/storm.sh --program "$program" --kernel "$oldest" --kernel "$newest" --count 2 --seconds 20 --jobs 2 || (($? == 75))
}

steps() {
    step "set-up" set_up
    step "cargo build" build
    built=$((status == 0))
    step "cargo fmt --check" cargo fmt --check
    step "cargo clippy" lints
    step "cargo test" unit_tests
    step "headers of bpf/ by themselves" scripts/check-bpf-headers.sh
    step "ONNX files" scripts/check-onnx.sh
    step "crates and unsafe code" scripts/check-supply.sh
    guest_step "the reference of options and statistics" scripts/cli-reference.sh --check "$program"
    guest_step "the page of replay in a browser" env SCX_TEMPONET="$program" scripts/check-report.sh
    step "the picture of load" scripts/load-picture.py --check
    step "commands of the README that the newcomer's walk knows" tests/walk.sh --list
    step "kernels: ${kernels[*]}" fetch_kernels
    guest_step "the scheduler on the oldest kernel, $oldest" on_oldest --mode fast
    guest_step "the scheduler on the newest kernel, $newest" on_newest --mode fast
    guest_step "on both, by a clock that counts instructions" counting_instructions
    local kernel
    for kernel in "${kernels[@]:1:${#kernels[@]}-2}"; do
        guest_step "and, in short, on $kernel" guest_tests --kernel "$kernel" load hotplug
    done
    guest_step "several caches and nodes, SMT" guest_tests --kernel 6.18.15 \
        --topology sockets=2,cores=2,threads=2 --nodes 2 load placement
    guest_step "two caches" guest_tests --kernel "$oldest" --topology sockets=2,cores=2 placement mending
    guest_step "a cache per CPU" guest_tests --kernel "$newest" --topology sockets=4,cores=1 placement hotplug
    guest_step "CPUs that a task may not use" guest_tests --kernel 6.18.15 --topology sockets=1,cores=4 masks
    guest_step "storms: two new seeds on $oldest and $newest" storms
}

steps
counting=0
steps
summary
((failed == 0))
