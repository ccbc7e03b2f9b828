#!/bin/bash
# More memory wanted than there is, with swap on a disk; the kernel kills whom it must.
#: mem 768M
#: disk 512M
#: timeout 600
. "$(dirname "$0")/../lib.sh"
for disk in /dev/vda /dev/nvme0n1; do [[ -b $disk ]] && break; done
[[ -b $disk ]] || skip "no disk for swap"
mkswap "$disk" >/dev/null
swapon "$disk"
# Page faults of the sentinels take disk time, which no scheduler can give them.
COMPLIANCE_FLOOR=0.5
begin
echo -1000 >"/proc/$scheduler_pid/oom_score_adj"
for pid in $$ "$watcher" "${sentinels[@]}"; do echo -1000 >"/proc/$pid/oom_score_adj"; done
stress-ng --quiet -t "$LOAD_S" --vm $((CPUS * 2)) --vm-bytes 120% --vm-method rowhammer --page-in --brk 1 --stack 1 || say "stress-ng ended with status $?, as who is killed for memory does"
assert_ge "$(awk '/^pswpout/ { print $2 }' /proc/vmstat)" 1000 "pages swapped out"
finish
swapoff "$disk"
