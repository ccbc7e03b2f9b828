#!/bin/bash
# Runs in the guest, for tests/package.sh: a stage per boot. Every line that counts begins with
# `package-test:`.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
SCX=/sys/kernel/sched_ext
FOLDER=/root/package
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

say() { printf 'package-test: %s\n' "$*"; }
# Without a bus, which `systemctl reboot` asks first in newer releases.
go_down() { sync; systemctl --no-block --job-mode=replace-irreversibly start "$1.target"; exit 0; }
end() { say "$*"; go_down poweroff; }
fail() {
    { journalctl -q -n 40 -o cat --no-pager; systemctl status --no-pager -l scx_temponet; } | sed 's/^/package-test:   /'
    end "failed: $*"
}
next_stage() { echo "$1" >$FOLDER/stage; go_down reboot; }
property() { systemctl show --value -p "$1" "${2:-scx_temponet}"; }
loaded() { [[ $(cat $SCX/state) == enabled && $(cat $SCX/root/ops) == temponet* ]]; }
unloaded() { [[ $(cat $SCX/state) == disabled ]]; }
now_ms() { local us=${EPOCHREALTIME/[.,]/}; echo $((us / 1000)); }
# status_is N: what `scx_temponet status` ends with, where an emulator's hiccups may be 1.
status_is() {
    local status=0
    scx_temponet status >/run/status.txt 2>&1 || status=$?
    if [[ $status != "$1" && ! ($1 == 0 && $status == 1) ]]; then
        cat /run/status.txt
        fail "status is $status, not $1"
    fi
    say "status $status: $(head -n 1 /run/status.txt)"
}
# ready_again PID: another one than this is loaded, or systemd has given up.
ready_again() {
    case $(property ActiveState) in
        failed) return 0 ;;
        active) [[ $(property MainPID) != "$1" ]] && loaded ;;
        *) return 1 ;;
    esac
}
wait_until() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do ((SECONDS < until)) || return 1; sleep 0.1; done
}

install_it() {
    apt-get install -y $FOLDER/old.deb >/tmp/install.txt 2>&1 || { cat /tmp/install.txt; fail "apt-get install"; }
    unloaded || fail "loaded by the installation"
    [[ $(systemctl is-enabled scx_temponet) == disabled ]] || fail "enabled by the installation"
    status_is 3
    for file in /usr/share/man/man1/scx_temponet.1.gz /usr/share/man/man1/scx_temponet-hint.1.gz \
        /usr/share/bash-completion/completions/scx_temponet /usr/share/zsh/vendor-completions/_scx_temponet \
        /usr/share/fish/vendor_completions.d/scx_temponet.fish /usr/share/scx_temponet/temponet.onnx \
        /usr/share/doc/scx-temponet/examples/rules/audio.toml; do
        [[ -s $file ]] || fail "no $file"
    done
    bash -n /usr/share/bash-completion/completions/scx_temponet || fail "the completions of bash"
    scx_temponet doctor || fail "doctor"
    for ((i = 0; i < 20; i++)); do scx_temponet --help >/dev/null; done
    say "$(du -k $FOLDER/old.deb | cut -f1) KiB, installed and not loaded; $(find / -xdev -name 'python3*' -path '*bin*' | wc -l) pythons"
    printf 'SCX_TEMPONET_OPTIONS="--rules /etc/scx_temponet.toml --metrics /run/scx_temponet/figures.prom"\n' >/etc/default/scx_temponet
    cp /usr/share/doc/scx-temponet/examples/rules/audio.toml /etc/scx_temponet.toml
    systemctl enable --now scx_temponet || fail "systemctl enable --now"
    # Type=notify: it says when it is loaded.
    loaded || fail "systemd says that it started, and it is not loaded"
    status_is 0
    say "enabled and loaded"
    next_stage after_boot
}

after_boot() {
    loaded || fail "not loaded after a reboot"
    local ours logins
    ours=$(property ActiveEnterTimestampMonotonic)
    logins=$(property ActiveEnterTimestampMonotonic systemd-user-sessions)
    ((ours > 0 && ours < logins)) || fail "loaded at $ours us, and logins were let in at $logins us"
    say "loaded after a reboot, $(((logins - ours) / 1000)) ms before anybody may log in"
    status_is 0
    cat /run/status.txt

    "${as_nobody[@]}" sleep 10000 &
    task=$!
    "${as_nobody[@]}" scx_temponet hint --runtime 1ms --period 100ms --pid $task || fail "a hint of an ordinary user"
    "${as_nobody[@]}" scx_temponet hint --show --pid $task | grep -q '100' || fail "the hint is not there"
    say "an ordinary user declared a deadline"

    wait_until 30 grep -q '^scx_temponet_deadlines_met_total' /run/scx_temponet/figures.prom || fail "no figures for Prometheus"
    say "$(grep -vc '^#' /run/scx_temponet/figures.prom) lines of figures for Prometheus"

    local main
    main=$(property MainPID)
    systemctl reset-failed scx_temponet
    apt-get install -y $FOLDER/new.deb >/tmp/upgrade.txt 2>&1 || { cat /tmp/upgrade.txt; fail "the upgrade"; }
    loaded || fail "the upgrade unloaded it"
    [[ $(property MainPID) == "$main" ]] || fail "the upgrade restarted it"
    grep -q 'systemctl restart scx_temponet' /tmp/upgrade.txt || fail "the upgrade did not say how to load the new version"
    grep -q figures.prom /etc/default/scx_temponet || fail "the upgrade took the options away"
    "${as_nobody[@]}" scx_temponet hint --show --pid $task | grep -q '100' || fail "the upgrade took the hint away"
    [[ $(systemctl is-enabled scx_temponet) == enabled ]] || fail "the upgrade disabled it"
    say "upgraded: options, hint and scheduler stayed"
    systemctl restart scx_temponet || fail "the new version does not start"
    loaded || fail "the new version is not loaded"
    kill $task

    local began ended
    began=$(now_ms)
    systemctl stop scx_temponet || fail "systemctl stop"
    unloaded || fail "loaded after systemctl stop"
    ended=$(now_ms)
    say "stopped in $((ended - began)) ms"
    [[ ! -e /run/scx_temponet ]] || fail "/run/scx_temponet was left behind"
    status_is 3

    # systemd makes a folder below /tmp for PrivateDevices=.
    [[ -e /usr/lib/systemd/system/tmp.mount ]] || cp /usr/share/systemd/tmp.mount /etc/systemd/system/
    systemctl enable tmp.mount || fail "no tmp.mount"
    sed -i 's/ ext4 rw / ext4 ro /' /etc/fstab
    next_stage read_only
}

read_only() {
    if touch /root/written 2>/dev/null; then fail "the root is writable"; fi
    loaded || fail "not loaded on a read-only root"
    status_is 0
    "${as_nobody[@]}" scx_temponet hint --runtime 1ms --period 100ms -- true || fail "a hint on a read-only root"
    wait_until 30 grep -q '^scx_temponet_deadlines_met_total' /run/scx_temponet/figures.prom || fail "no figures for Prometheus"
    mount -o remount,rw / || fail "cannot make the root writable again"
    sed -i 's/ ext4 ro / ext4 rw /' /etc/fstab
    say "works on a read-only root: load, status, hint, figures"
    next_stage crash_loop
}

crash_loop() {
    local main tries=1
    systemctl stop scx_temponet
    systemctl reset-failed scx_temponet
    systemctl start scx_temponet || fail "systemctl start before the crash loop"
    while main=$(property MainPID) && ((main > 0 && tries < 10)); do
        kill -KILL "$main"
        wait_until 120 ready_again "$main" || fail "killed, and neither loaded nor given up: $(property ActiveState)"
        [[ $(property ActiveState) == active ]] && tries=$((tries + 1))
    done
    unloaded || fail "given up and loaded"
    ((tries == 3)) || fail "given up after $tries tries"
    journalctl -q -u scx_temponet -o cat | grep -q 'repeated too quickly' || fail "the journal does not say so"
    say "a crash loop ended after $tries tries: $(journalctl -q -u scx_temponet -o cat | grep -m 1 'repeated too quickly')"
    systemctl reset-failed scx_temponet
    next_stage purge_it
}

purge_it() {
    loaded || fail "not loaded after the second reboot"
    dpkg -L scx-temponet | sort >/tmp/files
    dpkg --purge scx-temponet >/tmp/purge.txt 2>&1 || { cat /tmp/purge.txt; fail "the purge"; }
    unloaded || fail "loaded after the purge"
    local file left=()
    while IFS= read -r file; do
        [[ -d $file ]] || [[ ! -e $file ]] || left+=("$file")
    done </tmp/files
    # The rules were the administrator's own; dpkg keeps its log.
    while IFS= read -r file; do left+=("$file"); done < <(
        find / -xdev \( -name '*temponet*' -o -name 'scx-temponet*' \) ! -path "$FOLDER/*" ! -path '/etc/scx_temponet.toml' ! -path '/etc/systemd/system/scx_temponet.service.d*' ! -path '/tmp/*' ! -path '/proc/*'
        find /run /sys/fs/bpf -name '*temponet*' ! -path '/run/systemd/*' 2>/dev/null
    )
    ((${#left[@]} == 0)) || fail "left behind: ${left[*]}"
    [[ -e /etc/scx_temponet.toml ]] || fail "the administrator's rules are gone"
    say "purged, nothing left behind"
    next_stage after_purge
}

after_purge() {
    unloaded || fail "loaded after the purge and a reboot"
    [[ -z $(systemctl --failed --no-legend) ]] || fail "units failed: $(systemctl --failed --no-legend)"
    end "passed"
}

stage=install_it
[[ -e $FOLDER/stage ]] && stage=$(<$FOLDER/stage)
say "stage $stage, Linux $(uname -r)"
"$stage"
