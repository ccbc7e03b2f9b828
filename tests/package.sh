#!/usr/bin/env bash
# The Debian package's life in a guest with Debian's systemd, on a disk of its own: install,
# enable, reboot, status, a hint by an ordinary user, upgrade, a boot with a read-only root,
# crash loop, purge. Needs root.
#
#   tests/package.sh [OPTION]...
#
#   --kernel V      one that scripts/kernel.sh makes available (default: 6.18.15)
#   --suite S       release of Debian in the guest (default: bookworm)
#   --program P     package this scx_temponet instead of building one
#   --timeout S     seconds of this machine for each of the boots (default: 900)
#   --fresh         make the bare Debian anew
#
# The guest has no network, no python and no ONNX Runtime. What it says is shown, and kept in
# target/package/guest.txt.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

MOST_BOOTS=7
kernel=6.18.15 suite=bookworm limit=900 fresh='' build=()
while (($#)); do
    case $1 in
        -h | --help) print_manual; exit 0 ;;
        --kernel | --suite | --program | --timeout) (($# > 1)) || usage_error "$1 wants a value" ;;&
        --kernel) kernel=$2; shift 2 ;;
        --suite) suite=$2; shift 2 ;;
        --program) build=(--program "$2"); shift 2 ;;
        --timeout) [[ $2 =~ ^[1-9][0-9]*$ ]] || usage_error "--timeout: not a number of seconds: $2"; limit=$2; shift 2 ;;
        --fresh) fresh=1; shift ;;
        *) usage_error "unknown argument: $1" ;;
    esac
done
((EUID == 0)) || die "needs root, for debootstrap"
"$REPO/scripts/setup.sh" vm
need_packages debootstrap debian-archive-keyring e2fsprogs lintian
find_qemu || die "no usable QEMU"
kernel_folder=$("$REPO/scripts/kernel.sh" "$kernel")

old=$("$REPO/scripts/package.sh" ${build[@]+"${build[@]}"})
new=$("$REPO/scripts/package.sh" --revision 2 ${build[@]+"${build[@]}"})
say "lintian"
lintian --fail-on error --suppress-tags no-changelog,initial-upload-closes-no-bugs "$old"

# --- a bare Debian with systemd
bare=$CACHE/package/$suite
[[ -z $fresh ]] || rm -rf --one-file-system "$bare"
if [[ ! -e $bare.made ]]; then
    rm -rf --one-file-system "$bare"
    mkdir -p "$bare"
    elf=libelf1t64
    [[ $suite != bookworm ]] || elf=libelf1
    unshare --mount debootstrap --variant=minbase \
        --include=systemd,systemd-sysv,init-system-helpers,"$elf",zlib1g,kmod,procps,util-linux \
        "$suite" "$bare" "$(debian_mirror)"
    touch "$bare.made"
fi

work=$(mktemp -d)
qemu=''
trap 'kill $qemu 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
root=$work/root
cp -a "$bare" "$root"
mkdir -p "$root/root/package"
cp "$old" "$root/root/package/old.deb"
cp "$new" "$root/root/package/new.deb"
# An emulator may take longer to load it.
mkdir -p "$root/etc/systemd/system/scx_temponet.service.d"
printf '[Service]\nTimeoutStartSec=300s\n' >"$root/etc/systemd/system/scx_temponet.service.d/patience.conf"
cp "$REPO/tests/package/in_guest.sh" "$root/root/package/"
cp "$REPO/tests/package/package-test.service" "$root/etc/systemd/system/"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants" "$root/boot"
ln -s ../package-test.service "$root/etc/systemd/system/multi-user.target.wants/"
# libbpf reads it.
cp "$kernel_folder/config" "$root/boot/config-$(<"$kernel_folder/release")"
echo guest >"$root/etc/hostname"
echo '/dev/root / ext4 rw 0 1' >"$root/etc/fstab"
# Nobody logs in at a terminal there.
rm -f "$root/etc/systemd/system/getty.target.wants"/*
mke2fs -q -t ext4 -d "$root" "$work/disk" 3G

device=(-device 'nvme,drive=disk,serial=disk') name=nvme0n1
if grep -q '^CONFIG_VIRTIO_BLK=y' "$kernel_folder/config"; then
    device=(-device 'virtio-blk-pci,drive=disk') name=vda
fi
log=$REPO/target/package/guest.txt
: >"$log"
for ((boot = 1; boot <= MOST_BOOTS; boot++)); do
    say "boot $boot"
    timeout -k 5 "$limit" "${QEMU[@]}" -nodefaults -display none -no-reboot -accel tcg,thread=multi \
        -cpu max,-fma -smp 2 -m 2G -serial "file:$work/console" \
        -drive "file=$work/disk,format=raw,if=none,id=disk" "${device[@]}" \
        -kernel "$kernel_folder/vmlinuz" \
        -append "root=/dev/$name rw console=ttyS0 panic=-1 quiet loglevel=4 tsc=reliable systemd.show_status=no" \
        </dev/null >"$work/qemu" 2>&1 &
    qemu=$!
    wait "$qemu" || { cat "$work/qemu" >&2; tail -n 40 "$work/console" >&2; die "boot $boot ended with status $?"; }
    qemu=''
    tr -d '\r' <"$work/console" | sed -n 's/.*package-test: //p' | tee -a "$log"
    if grep -q '^failed' "$log"; then exit 1; fi
    if grep -q '^passed' "$log"; then exit 0; fi
done
die "the guest did not come to an end in $MOST_BOOTS boots"
