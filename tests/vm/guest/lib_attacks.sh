# shellcheck shell=bash
# What tests/vm/adversary.sh sets up in the guest.

# What an honest administrator may have set up: who owns which ids, a rule by name and a rule by
# cgroup for the honest user (1001), and a program that is set-uid.
prepare_attacks() {
    printf 'nobody:200000:65536\n' >/etc/subuid
    cat >/tmp/attacks.toml <<'TOML'
[[rule]]
comm = "data-loop*"
user = 1001
runtime = "1ms"
period = "5.33ms"
criticality = 1

[[rule]]
cgroup = "studio.slice"
user = 1001
runtime = "2ms"
period = "10ms"
TOML
    cp "$(command -v attacks)" /usr/bin/attacks-root
    chmod 4755 /usr/bin/attacks-root
    # Once in ten seconds khugepaged would hold the memory map of somebody who is measured.
    local huge_pages=/sys/kernel/mm/transparent_hugepage/enabled
    [[ ! -e $huge_pages ]] || echo never >$huge_pages
}

start_attacked() { start_scheduler --rules /tmp/attacks.toml; }
