# shellcheck shell=bash
# What the scripts share: where things are, how they speak, how packages get
# here. Sourced, never run.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/scx_temponet
SCRIPT=$(basename "$0")
# For the scripts that source this file.
# shellcheck disable=SC2034
KERNELS=(6.12.107 6.16.12 6.18.15 7.2.13)

# scx_cargo compiles bpf/ with this compiler; Debian's plain `clang` is too old.
export BPF_CLANG=${BPF_CLANG:-clang-19}
# Also where it is not there yet: scripts/setup.sh may install it while a script runs.
PATH=$HOME/.cargo/bin:$PATH
# Administrators' tools (chrt's relatives, busybox) are there on Debian even
# when a user's PATH does not say so.
PATH=$PATH:/usr/sbin:/sbin
export PATH

# Messages go to stderr, so that stdout stays what a script is asked for.
say() { printf '%s: %s\n' "$SCRIPT" "$*" >&2; }
die() { printf '%s: error: %s\n' "$SCRIPT" "$*" >&2; exit 1; }
# Bad usage: one sentence, status 2.
usage_error() { printf '%s: %s (see --help)\n' "$SCRIPT" "$*" >&2; exit 2; }
# The comment block at the top of a script is its manual.
print_manual() { sed -n '2,/^[^#]/{/^#/!q;s/^# \{0,1\}//;p}' "$0"; }

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "need root for: $*  (no sudo here: run it as root yourself)"
    fi
}

# Runs a command while holding the named lock, so that two runs that want the
# same thing in the cache do the work once.
with_lock() {
    local name=$1 fd
    shift
    mkdir -p "$CACHE/locks"
    exec {fd}>"$CACHE/locks/$name"
    if ! flock -n "$fd"; then
        say "waiting for another run ($name)"
        flock "$fd"
    fi
    # What the command starts must not inherit the lock. A failure ends the
    # script (set -e), and with it the lock; a signal still runs its EXIT trap.
    (
        trap 'exit 130' INT
        trap 'exit 143' TERM HUP
        "$@"
    ) {fd}>&-
    exec {fd}>&-
}

missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
    done
}

# Installs those of the named Debian packages that are missing.
need_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null || die "these packages are missing and this is no Debian: ${missing[*]}"
    with_lock apt install_packages "${missing[@]}"
}

# The version that apt would install; nothing where there is none.
package_candidate() {
    command -v apt-cache >/dev/null || return 0
    apt-cache policy "$1" | awk '/^  Candidate:/ && $2 != "(none)" { print $2 }'
}

install_packages() {
    say "installing Debian packages: $*"
    local log
    log=$(mktemp)
    if ! { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "apt-get could not install: $*"
    fi
    rm -f "$log"
}

# QEMU as a command, in the array QEMU: this machine's where it is new enough,
# else the one that scripts/setup.sh put into the cache.
find_qemu() {
    local version folder=$CACHE/qemu
    version=$(qemu-system-x86_64 --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
    if [[ $(printf '%s\n' 8.1 "$version" | sort -V | head -n1) == 8.1 ]]; then
        QEMU=(qemu-system-x86_64)
    elif [[ -x $folder/usr/bin/qemu-system-x86_64 ]]; then
        # shellcheck disable=SC2034
        QEMU=("$folder/usr/bin/qemu-system-x86_64" -L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios")
    else
        return 1
    fi
}

# ONNX Runtime and what it is linked with, as options of scripts/vm, a word per line.
onnxruntime_in_guest() {
    local library=${ORT_DYLIB_PATH:-}
    [[ -n $library ]] || library=$("$REPO/scripts/setup.sh" ort)
    printf -- '--add\n%s\n' "$library:/usr/lib/libonnxruntime.so"
    ldd "$library" | sed -n 's|.*=> \(/[^ ]*\).*|--add\n\1:\1|p'
}

# Where this machine is a guest itself, its host may keep the CPUs from it; a guest of
# ours then measures that.
MOST_STOLEN=20 # percent of the CPU time that was wanted
cpu_times() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 + $9, $9 }' /proc/stat; }
# stolen_since CPU_TIMES: percent.
stolen_since() { { printf '%s\n' "$1"; cpu_times; } | awk '{ wanted = $1 - w; stolen = $2 - s; w = $1; s = $2 } END { print int(wanted > 0 ? 100 * stolen / wanted : 0) }'; }

now_ms() { local now=${EPOCHREALTIME//[.,]/}; echo "${now%???}"; }
# time_had TIMES FROM TO SPAN: of SPAN ms, those that a guest really had between two moments
# (ms), where it had least, by what `scripts/vm --times` left. A thread of QEMU that was ready
# and did not run lost that time, but no more of it than other work on this machine took:
# vCPUs also wait for each other where there are more of them than CPUs.
time_had() {
    awk -v from="$2" -v to="$3" -v span="$4" -v cpus="$(nproc)" '
        $1 < from - 1500 || $1 > to + 1500 { next }
        n == 0 || $1 != at[n] { at[++n] = $1 }
        $2 == "all" { all[n] = $3; next }
        { ours[n] += $3; waited[n, $2] = $4; threads[$2] }
        END {
            for (i = 1; i < n; i++) {
                for (j = i + 1; j < n && at[j] - at[i] < span; j++);
                if (i > 1 && at[j] - at[i] < span) break
                most = 0
                for (thread in threads)
                    if ((i, thread) in waited && (j, thread) in waited && waited[j, thread] - waited[i, thread] > most)
                        most = waited[j, thread] - waited[i, thread]
                others = (all[j] - all[i] - (ours[j] - ours[i])) / cpus
                if (others < most) most = others
                lost = most / 1e6 / (at[j] - at[i])
                if (lost > worst) worst = lost
            }
            if (worst > 1) worst = 1
            printf "%.0f\n", span * (1 - worst)
        }' "$1"
}

# For five minutes at most.
await_calm() {
    local until=$((SECONDS + 300)) before cpu
    while ((SECONDS < until)); do
        before=$(cpu_times)
        for ((cpu = 0; cpu < $(nproc); cpu++)); do timeout 5 bash -c 'while :; do :; done' & done
        wait || true
        (($(stolen_since "$before") > MOST_STOLEN)) || return 0
        sleep 15
    done
}

# The mirror that apt on this machine uses for the Debian archive, or for the one of this label.
debian_mirror() {
    local label=${1:-Debian} uri
    uri=$(archive_of "$label")
    if [[ -z $uri ]]; then
        as_root apt-get update -q >/dev/null
        uri=$(archive_of "$label")
    fi
    [[ -n $uri ]] || die "apt on this machine knows no archive that is called $label"
    printf '%s\n' "$uri"
}

archive_of() {
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk -v label="$1" '$1 == "Debian" && $2 == label { print $3; exit }'
}

# apt with a state of its own: other suites than the host's, and nothing
# installed. The first argument names the state, the second its suites.
private_apt_init() {
    local state=$CACHE/apt/$1 uri suite
    shift
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    uri=$(debian_mirror)
    for suite in "$@"; do
        printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite"
    done >"$state/sources.list"
    PRIVATE_APT=(
        -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state"
        -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
        -o Acquire::IndexTargets::deb::CNF::DefaultEnabled=false
    )
    # Package lists younger than a day are good enough.
    if [[ -z $(find "$state/stamp" -mtime -1 2>/dev/null) ]]; then
        say "fetching the package lists of $*"
        apt-get "${PRIVATE_APT[@]}" update >&2 || die "could not fetch the package lists of $*"
        touch "$state/stamp"
    fi
}

# pinned_python NAME IMPORTS: a Python that has what scripts/pinned/NAME.txt names, in the cache.
# Prints its path.
pinned_python() {
    local venv=$CACHE/$1-venv
    need_packages python3 python3-venv ca-certificates
    with_lock "$1-venv" make_venv "$venv" "$@" >&2 || return
    printf '%s\n' "$venv/bin/python"
}
make_venv() {
    "$1/bin/python" -c "import $3" 2>/dev/null && return
    say "installing for Python: $3"
    python3 -m venv "$1"
    "$1/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: --require-hashes \
        -r "$REPO/scripts/pinned/$2.txt" >&2
}
