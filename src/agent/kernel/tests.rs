use super::*;
use std::os::unix::fs::symlink;

/// A machine on which everything is as it should be.
struct Fake(tempfile::TempDir);

impl Fake {
    fn good() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        fake.put("/proc/sys/kernel/osrelease", "6.18.15+deb13-cloud-amd64\n");
        fake.put("/proc/sys/kernel/ftrace_enabled", "1\n");
        fake.put("/proc/self/status", status(0x1ff_ffff_ffff));
        fake.put("/proc/self/mounts", "bpf /sys/fs/bpf bpf rw 0 0\n");
        fake.put("/proc/self/limits", limits());
        fake.put("/proc/config.gz", "");
        fake.put("/sys/kernel/sched_ext/state", "disabled\n");
        fake.btf(&[("scx_bpf_kick_cpu", &["cpu", "flags"])]);
        fake
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn btf(&self, functions: &[(&str, &[&str])]) {
        self.put("/sys/kernel/btf/vmlinux", btf::made_up(functions));
    }

    fn remove(&self, path: &str) {
        let path = self.0.path().join(&path[1..]);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    fn host(&self) -> Host {
        Host::at(self.0.path())
    }

    fn refusal(&self) -> String {
        self.host().preflight().unwrap_err().to_string()
    }
}

/// Of this test, with these effective capabilities.
fn status(caps: u64) -> String {
    let real = fs::read_to_string("/proc/self/status").unwrap();
    let lines = real.lines().map(|line| match line.starts_with("CapEff:") {
        true => format!("CapEff:\t{caps:016x}\n"),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Of this test, with room to lock 8 MiB.
fn limits() -> String {
    let real = fs::read_to_string("/proc/self/limits").unwrap();
    let lines = real
        .lines()
        .map(|line| match line.starts_with("Max locked memory") {
            true => {
                "Max locked memory         8388608              8388608              bytes\n".into()
            }
            false => format!("{line}\n"),
        });
    lines.collect()
}

#[test]
fn a_good_machine_passes() {
    let fake = Fake::good();
    for check in fake.host().checks() {
        assert_eq!(check.verdict, Finding::Ok, "{check:?}");
        assert_eq!(check.fix, None);
    }
    fake.host().preflight().unwrap();
}

#[test]
fn old_and_unreadable_kernels_are_refused() {
    let fake = Fake::good();
    for (release, ok) in [
        ("6.11.9", false),
        ("5.15.0-generic", false),
        ("6.12.107-scx", true),
        ("6.12-rc1", true),
        ("7.2.13+deb14", true),
        ("10.0", true),
        ("", false),
        ("nonsense", false),
    ] {
        fake.put("/proc/sys/kernel/osrelease", release);
        assert_eq!(fake.host().preflight().is_ok(), ok, "{release}");
    }
    fake.put("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    assert_eq!(
        fake.refusal(),
        "Linux 6.1.0-40-amd64 is older than 6.12, the first with sched_ext: boot Linux 6.12 or newer"
    );
}

#[test]
fn a_kernel_without_sched_ext_is_refused_with_where_to_get_one() {
    let fake = Fake::good();
    fake.remove("/sys/kernel/sched_ext");
    assert!(fake.refusal().contains("without CONFIG_SCHED_CLASS_EXT"));
    fake.remove("/sys/kernel");
    assert!(fake.refusal().contains("/sys is not mounted"));
}

#[test]
fn another_scheduler_is_named() {
    let fake = Fake::good();
    fake.put("/sys/kernel/sched_ext/state", "enabled\n");
    fake.put("/sys/kernel/sched_ext/root/ops", "bpfland_1.1.4\n");
    assert!(fake
        .refusal()
        .starts_with("the sched_ext scheduler `bpfland_1.1.4` is enabled: end it first"));
    fake.put("/sys/kernel/sched_ext/root/ops", "temponet\n");
    assert!(fake.refusal().contains("it is scx_temponet itself"));
}

#[test]
fn malformed_kfuncs_are_explained_before_loading() {
    let fake = Fake::good();
    fake.btf(&[
        ("scx_bpf_a", &["x", "aux"]),
        ("scx_bpf_b", &["aux"]),
        ("scx_bpf_c", &["aux"]),
        ("scx_bpf_good", &["x"]),
    ]);
    let reason = fake.refusal();
    assert!(
        reason.contains("describes 3 of 4 sched_ext functions wrongly (scx_bpf_a, scx_bpf_b, …)")
            && reason.contains("pahole older than 1.26"),
        "{reason}"
    );
    fake.btf(&[("bpf_other", &["x"])]);
    assert!(fake.refusal().contains("has no sched_ext functions"));
    fake.remove("/sys/kernel/btf/vmlinux");
    assert!(fake.refusal().contains("CONFIG_DEBUG_INFO_BTF"));
    // One we cannot read is not a reason to refuse.
    fake.put("/sys/kernel/btf/vmlinux", "from the future");
    fake.host().preflight().unwrap();
}

#[test]
fn capabilities_are_read_from_the_effective_set() {
    let fake = Fake::good();
    let put = |caps: u64| fake.put("/proc/self/status", status(caps));
    put(0);
    assert!(fake.refusal().ends_with("run it as root"));
    put(1 << CAP_BPF);
    assert!(fake.refusal().contains("CAP_PERFMON"));
    put(1 << CAP_BPF | 1 << CAP_PERFMON);
    fake.host().preflight().unwrap();
    let memlock = fake.host().memlock();
    assert_eq!(memlock.verdict, Finding::Note, "no CAP_IPC_LOCK");
    assert!(memlock.detail.contains("8388608"));
    put(1 << CAP_SYS_ADMIN);
    fake.host().preflight().unwrap();
    fake.put("/proc/self/limits", "cut off");
    assert!(fake
        .host()
        .memlock()
        .detail
        .contains("an unknown number of bytes"));
    fake.put("/proc/self/status", "Name:\tx\n");
    assert!(fake.refusal().contains("/proc/self/status cannot be read"));
}

#[test]
fn the_config_is_looked_for_where_libbpf_does() {
    let fake = Fake::good();
    fake.remove("/proc/config.gz");
    assert!(fake
        .refusal()
        .contains("neither /boot/config-6.18.15+deb13-cloud-amd64 nor /proc/config.gz"));
    fake.put("/boot/config-6.18.15+deb13-cloud-amd64", "CONFIG_HZ=250\n");
    fake.host().preflight().unwrap();
    let boot = fake.0.path().join("boot/config-6.18.15+deb13-cloud-amd64");
    fs::remove_file(&boot).unwrap();
    symlink("/nonexistent", &boot).unwrap();
    assert_eq!(fake.host().config().verdict, Finding::Fail);
}

#[test]
fn tracer_bpffs_and_lockdown_are_checked() {
    let fake = Fake::good();
    fake.put(
        "/sys/kernel/security/lockdown",
        "none integrity [confidentiality]\n",
    );
    assert!(fake.refusal().contains("locked down"));
    fake.put(
        "/sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    fake.put(
        "/proc/self/mounts",
        b"tmpfs /a\\040\xff tmpfs rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n",
    );
    assert_eq!(fake.host().bpffs().verdict, Finding::Ok);
    fake.put("/proc/self/mounts", "tmpfs /sys/fs/bpf tmpfs rw 0 0\n");
    assert!(fake.refusal().ends_with("mount -t bpf bpf /sys/fs/bpf"));
    fake.remove("/proc/sys/kernel/ftrace_enabled");
    assert!(fake.refusal().contains("CONFIG_FUNCTION_TRACER"));
}

/// A scheduler that runs, with these effective capabilities and this mode of seccomp.
fn put_daemon(fake: &Fake, caps: u64, seccomp: u32) {
    let status = status(caps);
    let lines = status
        .lines()
        .map(|line| match line.starts_with("Seccomp:") {
            true => format!("Seccomp:\t{seccomp}\n"),
            false => format!("{line}\n"),
        });
    fake.put("/proc/4000000/status", lines.collect::<String>());
    fake.put("/proc/4000000/task/4000000/comm", "scx_temponet\n");
    fake.put("/proc/4000000/task/4000001/comm", "temponet-hint\n");
}

fn of_unit(fake: &Fake) -> [Check; 2] {
    fake.host().unit_checks().try_into().unwrap()
}

const TWO: u64 = 1 << CAP_BPF | 1 << CAP_PERFMON;
const PTRACE: u64 = 1 << 19;

#[test]
fn a_unit_that_is_too_tight_or_too_loose_is_told_by_what_it_costs() {
    let fake = Fake::good();
    let [hints, unit] = of_unit(&fake);
    assert_eq!((hints.verdict, unit.verdict), (Finding::Ok, Finding::Ok));

    put_daemon(&fake, TWO, 2);
    let [hints, unit] = of_unit(&fake);
    assert_eq!((hints.verdict, unit.verdict), (Finding::Ok, Finding::Ok));

    // As Debian's hardening guides mount it, in all its spellings.
    for value in ["1", "2", "invisible", "ptraceable"] {
        let mounts = format!("proc /proc proc rw,nosuid,hidepid={value} 0 0\n");
        fake.put("/proc/self/mounts", mounts);
        put_daemon(&fake, TWO, 2);
        let [hints, _] = of_unit(&fake);
        assert_eq!(hints.verdict, Finding::Note, "{value}");
        assert!(hints.detail.contains("only root"), "{}", hints.detail);
        assert!(hints.fix.unwrap().contains("CAP_SYS_PTRACE"));
        put_daemon(&fake, TWO | PTRACE, 2);
        let [hints, unit] = of_unit(&fake);
        assert_eq!((hints.verdict, unit.verdict), (Finding::Ok, Finding::Ok));
    }

    put_daemon(&fake, 0x1ff_ffff_ffff, 0);
    let [_, unit] = of_unit(&fake);
    assert_eq!(unit.verdict, Finding::Note);
    assert!(unit.detail.contains("38 capabilities"), "{}", unit.detail);
    assert!(unit.detail.contains("any system call"), "{}", unit.detail);
}

#[test]
fn a_command_of_ours_is_not_taken_for_the_scheduler() {
    let fake = Fake::good();
    put_daemon(&fake, 0x1ff_ffff_ffff, 0);
    fake.remove("/proc/4000000/task/4000001");
    let [_, unit] = of_unit(&fake);
    assert_eq!(unit.verdict, Finding::Ok);
}
