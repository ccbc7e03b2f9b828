#!/usr/bin/env bash
# A newcomer's walk: does the README's commands in a bare Debian 12, in the README's
# order, and shows what each of them prints. Needs root.
#
#   tests/walk.sh [OPTION]...
#
#   --list         print the steps and do nothing
#   --from N       begin with step N, with what the steps before left there
#   --to N         end after step N
#   --root DIR     where the bare Debian is made, or was made before
#                  (default: in the cache)
#   --fresh        make it anew
#   --carry PATH   copy a file or folder of this machine to the same place there, e.g. a
#                  certificate or a proxy's settings; may be given again
#   --env NAME     pass this variable on; may be given again
#
# The commands are those in the code blocks of "Try it", "Install" and "Use"; one that the
# walk does not know is an error. Commands that load a scheduler are done in a guest, never
# on this machine. The guest has the program that was built, root, and no compiler: so
# `sudo` is left out, and `scripts/run.sh OPTIONS` is `scx_temponet OPTIONS` there. Without a
# terminal `monitor` is `monitor --once`. What the README takes for granted is in tests/walk
# (control_loop) and tests/rtapp (workload.json), and the audio rules are
# /etc/scx_temponet.toml.
#
# What was printed is kept in target/walk, a file per step. The first step that fails ends
# the walk, with status 1.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

CHECKOUT=/root/scx_temponet # in the bare Debian
list='' from=1 to=1000 root=$CACHE/walk fresh='' carried=() variables=()
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --list) list=1; shift ;;
        --fresh) fresh=1; shift ;;
        --from | --to | --root | --carry | --env) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --from | --to) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "$1: not a step: $2" ;;&
        --from) from=$2; shift 2 ;;
        --to) to=$2; shift 2 ;;
        --root) root=$(realpath -m -- "$2"); shift 2 ;;
        --carry) [[ -e $2 ]] || usage_error "--carry: no such file: $2"; carried+=("$(realpath -s -- "$2")"); shift 2 ;;
        --env) [[ -v $2 ]] || usage_error "--env: not set: $2"; variables+=("$2=${!2}"); shift 2 ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done

# The README's commands, a line each, without what it says of them.
readme_commands() {
    awk '/^## / { wanted = /^## (Try it|Install|Use)$/ }
        /^```/ { inside = !inside; next }
        wanted && inside { sub(/ +# .*/, ""); if ($0 != "") print }' "$REPO/README.md"
}

# place_of COMMAND: root (of the bare Debian) or guest.
place_of() {
    case $1 in
        'scripts/run.sh --guest' | scripts/build.sh | 'sudo install '* | 'scx_temponet doctor') echo root ;;
        *' replay '*' --live'*) echo guest ;;
        'scx_temponet replay '*) echo root ;;
        'scripts/run.sh --'* | 'sudo scx_temponet' | 'sudo scx_temponet --'*) echo guest ;;
        'scx_temponet hint '* | 'sudo scx_temponet monitor') echo guest ;;
        *) die "the README has a command that this walk does not know: $1" ;;
    esac
}

# One step per command in the root; commands for the guest that follow each other are one
# step, because a scheduler that one loads is there for the next.
steps=('make_root') titles=('debootstrap: a bare Debian 12')
plan() {
    local command place last=root
    while IFS= read -r command; do
        place=$(place_of "$command")
        if [[ $place == guest && $last == guest ]]; then
            steps[-1]+=" $(printf '%q' "$command")"
            titles[-1]+="; $command"
        elif [[ $place == guest ]]; then
            steps+=("in_guest $(printf '%q' "$command")")
            titles+=("in a guest: $command")
        else
            steps+=("in_root $(printf '%q' "$command")")
            titles+=("$command")
        fi
        last=$place
    done < <(readme_commands)
    ((${#steps[@]} > 1)) || die "no command found in the README"
}

is_made() { [[ -e $root/.walk && $(<"$root/.walk") == made ]]; }

make_root() {
    # One that was begun and not finished is of no use. Only what a walk made is removed.
    if [[ -e $root/.walk && (-n $fresh || $(<"$root/.walk") != made) ]]; then rm -rf --one-file-system "$root"; fi
    if ! is_made; then
        [[ ! -e $root || -z $(ls -A "$root") ]] || die "$root is there and no walk made it: choose another --root"
        need_packages debootstrap debian-archive-keyring
        mkdir -p "$root"
        echo begun >"$root/.walk"
        # Nothing but what apt needs. What debootstrap mounts goes with it.
        unshare --mount debootstrap --variant=minbase bookworm "$root" "$(debian_mirror)"
        # debootstrap names one suite. Debian's installer and its images name these as well.
        printf 'deb %s %s main\n' "$(debian_mirror)" bookworm-updates \
            "$(debian_mirror Debian-Security)" bookworm-security >>"$root/etc/apt/sources.list"
        echo made >"$root/.walk"
    fi
    copy_files
    du -sh "$root"
}

copy_files() {
    local path
    for path in "${carried[@]}"; do tar -C / -c "${path#/}" | tar -C "$root" -x; done
    # The files that git knows, as they are here.
    mkdir -p "$root$CHECKOUT"
    (cd "$REPO" && git ls-files -z | tar --null -T - -c) | tar -C "$root$CHECKOUT" --no-same-owner -x
    cp "$REPO/tests/rtapp/one-cpu.json" "$root$CHECKOUT/workload.json"
}

# in_root COMMAND: in the checkout there, in a shell that knows nothing of this machine. Its
# mounts and processes end with it. `|| exit` keeps the shell as the first process of its
# namespace, which no signal ends by default; the command is not to be that.
in_root() {
    # As root, and a bare Debian has no sudo.
    local command=${1#sudo } status
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -euc '
        root=$1
        shift
        # Not chroot: who is in one may have no namespaces and change no mounts.
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount --rbind /dev "$root/dev"
        pivot_root . .
        umount --lazy .
        exec env -i "$@"
    ' walk "$root" HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${variables[@]}" bash -c "cd $CHECKOUT && $command || exit" && status=0 || status=$?
    # doctor says with 1 that this machine's own kernel cannot load the scheduler.
    if [[ $command == *' doctor' ]] && ((status == 1)); then status=0; fi
    return "$status"
}

# in_guest COMMAND...: one guest for all of them.
in_guest() {
    in_root "scripts/vm --no-fma --timeout 900 --add tests/walk/in_guest.sh:/vm/walk \
        --add tests/walk/control_loop --add workload.json --add packaging \
        --add packaging/rules/audio.toml:/etc/scx_temponet.toml -- bash /vm/walk $(printf '%q ' "$@")"
}

plan
if [[ -n $list ]]; then
    for i in "${!steps[@]}"; do printf '%2d  %s\n' $((i + 1)) "${titles[i]}"; done
    exit 0
fi
((EUID == 0)) || die "needs root, for debootstrap and its mounts"
if ((from > 1)); then
    is_made || die "no bare Debian in $root yet: begin with step 1"
    copy_files
fi
out=$REPO/target/walk
mkdir -p "$out"
for ((i = from - 1; i < ${#steps[@]} && i < to; i++)); do
    printf '\n== step %d of %d, after %d min %02d s: %s\n' $((i + 1)) "${#steps[@]}" $((SECONDS / 60)) $((SECONDS % 60)) "${titles[i]}"
    log=$out/$(printf '%02d' $((i + 1))).txt
    # In a subshell that is no condition, where `set -e` holds.
    set +e
    (set -e; eval "${steps[i]}") 2>&1 </dev/null | tee "$log"
    status=${PIPESTATUS[0]}
    set -e
    if ((status)); then
        printf '\n== step %d failed with status %d: %s\n   what it printed: %s; go on there with --from %d\n' \
            $((i + 1)) "$status" "${titles[i]}" "$log" $((i + 1))
        exit 1
    fi
done
printf '\n== %d of %d steps walked in %d min %02d s; what they printed is in %s\n' \
    $((i - from + 1)) "${#steps[@]}" $((SECONDS / 60)) $((SECONDS % 60)) "$out"
