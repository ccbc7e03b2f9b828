//! `scx_temponet rules --check`: what a rules file says, and whom it means.
//!
//! Exit status: 0 all is well, 1 a rule never applies, 2 the file is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use procfs::process::Task;

use super::out;
use crate::agent::rules::{self, Pattern, Place, Rule, Treatment};
use crate::hint::duration::Pretty;
use crate::proc::{self, printable};

/// Check a rules file without loading anything
///
/// Says each rule in words and which threads it matches now. Status 0: every rule can apply;
/// 1: one never does, because rules above it match all that it matches; 2: the file is refused.
#[derive(Args, Debug, Clone)]
pub struct RulesArgs {
    /// The file; - reads standard input
    #[arg(long, value_name = "FILE", required = true, allow_hyphen_values = true)]
    check: PathBuf,

    /// Name all threads that match, not only the first eight
    #[arg(long)]
    wide: bool,
}

/// So many threads are named where nobody asks for all.
const NAMED: usize = 8;
/// As deep as the BPF half looks (CGROUP_LEVELS in bpf/params.bpf.h).
const CGROUP_LEVELS: usize = 16;

pub fn run(args: &RulesArgs) -> ExitCode {
    let rules = match rules::load(&args.check) {
        Ok(rules) => rules,
        Err(error) => {
            out::errln!("scx_temponet: {error}");
            return ExitCode::from(2);
        }
    };
    let threads = threads(Path::new("/proc"));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let named = if args.wide { usize::MAX } else { NAMED };
    let report = report(&rules, &threads, cpus, named);
    if let Err(error) = out::write(&report.text) {
        out::errln!("scx_temponet: {error:#}");
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(report.shadowed > 0))
}

/// What a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    tid: u32,
    comm: String,
    /// Names of its cgroup's directory and those above it, the root left out.
    cgroups: Vec<String>,
    /// Nothing where they could not be read.
    uids: Option<[u32; 4]>,
    /// SCHED_FIFO, RR or DEADLINE: no sched_ext scheduler sees it.
    is_realtime: bool,
}

fn threads(root: &Path) -> Vec<Thread> {
    // One that exits meanwhile is left out.
    let mut threads: Vec<Thread> = proc::threads(root, None)
        .filter_map(|task| {
            Some(Thread {
                tid: task.tid as u32,
                comm: proc::comm(&task)?,
                cgroups: names(&proc::cgroup(&task).unwrap_or_default()),
                uids: proc::uids(&task),
                is_realtime: is_realtime(&task),
            })
        })
        .collect();
    threads.sort_unstable_by_key(|thread| thread.tid);
    threads
}

fn names(cgroup: &str) -> Vec<String> {
    let names = cgroup.split('/').filter(|name| !name.is_empty());
    names.take(CGROUP_LEVELS).map(str::to_owned).collect()
}

fn is_realtime(task: &Task) -> bool {
    let policy = task.stat().ok().and_then(|stat| stat.policy);
    matches!(
        policy.map(|policy| policy as i32),
        Some(libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    )
}

fn matches(rule: &Rule, thread: &Thread) -> bool {
    let of_name = rule
        .comm
        .as_ref()
        .is_none_or(|comm| comm.matches(&thread.comm));
    let of_group = rule
        .cgroup
        .as_ref()
        .is_none_or(|cgroup| cgroup.matches(&thread.cgroups));
    let of_user = rule
        .user
        .as_ref()
        .is_none_or(|user| thread.uids.is_some_and(|uids| user.owns(uids)));
    of_name && of_group && of_user
}

struct Report {
    text: String,
    shadowed: usize,
}

fn report(rules: &[Rule], threads: &[Thread], cpus: usize, named: usize) -> Report {
    // The first rule that matches is the one that applies.
    let mut applies: BTreeMap<usize, Vec<&Thread>> = BTreeMap::new();
    for thread in threads {
        if let Some(first) = rules.iter().position(|rule| matches(rule, thread)) {
            applies.entry(first).or_default().push(thread);
        }
    }
    let mut text = String::new();
    let (mut shadowed, mut declared, mut density) = (0, 0, 0.0);
    for (i, rule) in rules.iter().enumerate() {
        text += &format!("line {}: {}\n", rule.line, words(rule));
        if let Some(before) = rules[..i].iter().find(|before| before.covers(rule)) {
            shadowed += 1;
            text += &format!(
                "  never applies: the rule in line {} comes first and matches all that this one does\n",
                before.line
            );
            continue;
        }
        let here = applies.get(&i).map_or(&[][..], Vec::as_slice);
        text += &format!("  {}\n", matched(here, named));
        let realtime = here.iter().filter(|thread| thread.is_realtime).count();
        if realtime > 0 {
            text += &format!(
                "  no effect on {realtime} of them: real-time threads run before every sched_ext scheduler\n"
            );
        }
        let Treatment::Deadline(hint) = rule.treatment else {
            continue;
        };
        let effective = here.len() - realtime;
        let admitted = rule
            .max
            .map_or(effective, |max| effective.min(max as usize));
        if admitted < effective {
            text += &format!(
                "  no effect on {} of them: max is {admitted}\n",
                effective - admitted
            );
        }
        for reason in too_wide(rule, here) {
            text += &format!("  too wide: {reason}\n");
        }
        declared += admitted;
        density += hint.density() * admitted as f64;
    }
    text += &format!(
        "{}, {} declared now: {density:.2} of {}\n",
        number(rules.len(), "rule"),
        number(declared, "thread"),
        number(cpus, "CPU")
    );
    if density > cpus as f64 {
        text += "This is more than the machine has: not all of them can be on time at once.\n";
    }
    Report { text, shadowed }
}

/// Who could have a deadline by this rule and should perhaps not.
fn too_wide(rule: &Rule, here: &[&Thread]) -> Vec<String> {
    let mut reasons = Vec::new();
    match (&rule.user, &rule.cgroup) {
        (Some(_), _) | (None, Some(Place::At(_))) => {}
        (None, Some(Place::Named(_))) => {
            reasons.push("who may make cgroups can make one of this name; give a user".into())
        }
        (None, None) => reasons.push("any user's thread can take this name; give a user".into()),
    }
    let users: BTreeSet<u32> = here
        .iter()
        .filter_map(|thread| Some(thread.uids?[0]))
        .collect();
    if users.len() > 1 {
        let users: Vec<String> = users.iter().map(u32::to_string).collect();
        reasons.push(format!(
            "it matches threads of the users {} now",
            users.join(", ")
        ));
    }
    reasons
}

fn number(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn matched(threads: &[&Thread], named: usize) -> String {
    if threads.is_empty() {
        return "matches no thread now".into();
    }
    let names: Vec<String> = threads
        .iter()
        .take(named)
        .map(|thread| format!("{}[{}]", printable(&thread.comm), thread.tid))
        .collect();
    let rest = match threads.len() - names.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!(
        "matches {}: {}{rest}",
        number(threads.len(), "thread"),
        names.join(", ")
    )
}

fn words(rule: &Rule) -> String {
    let pattern = |pattern: &Pattern| {
        let text = printable(&pattern.text);
        match pattern.prefix {
            true => format!("whose name begins with `{text}`"),
            false => format!("called `{text}`"),
        }
    };
    let mut who = "threads".to_owned();
    if let Some(comm) = &rule.comm {
        who += &format!(" {}", pattern(comm));
    }
    match &rule.cgroup {
        None => {}
        Some(Place::Named(name)) => who += &format!(" in a cgroup {}", pattern(name)),
        Some(Place::At(path)) => {
            let names: String = path
                .iter()
                .map(|name| format!("/{}", printable(&name.text)))
                .collect();
            let end = if path.iter().any(|name| name.prefix) {
                "*"
            } else {
                ""
            };
            who += &format!(" in the cgroup `{names}{end}`");
        }
    }
    if let Some(user) = &rule.user {
        who += &format!(" of user `{}`", printable(&user.written));
    }
    if let Some(max) = rule.max {
        who += &format!(", at most {max} of them,");
    }
    let what = match rule.treatment {
        Treatment::Background => "run in the background, without deadlines".to_owned(),
        Treatment::Deadline(hint) => {
            let critical = match hint.criticality() {
                0 => String::new(),
                level => format!(", criticality {level}"),
            };
            format!(
                "need {} of CPU time within {} of a wake-up, every {} ({:.2} of a CPU each{critical})",
                Pretty(hint.runtime_ns()),
                Pretty(hint.deadline_ns()),
                Pretty(hint.period_ns()),
                hint.density()
            )
        }
    };
    format!("{who} {what}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn thread(tid: u32, comm: &str, cgroups: &[&str]) -> Thread {
        Thread {
            tid,
            comm: comm.into(),
            cgroups: cgroups.iter().map(|&name| name.into()).collect(),
            uids: Some([1000; 4]),
            is_realtime: false,
        }
    }

    fn rules(text: &str) -> Vec<Rule> {
        rules::parse(Path::new("r.toml"), text).unwrap()
    }

    const AUDIO: &str = r#"
[[rule]]
comm = "data-loop*"
runtime = "1ms"
period = "4ms"
criticality = 1

[[rule]]
cgroup = "build.slice"
class = "background"
"#;

    #[test]
    fn a_rule_is_said_in_words_with_the_threads_that_it_matches() {
        let mut realtime = thread(9, "data-loop.0", &[]);
        realtime.is_realtime = true;
        let threads = [
            thread(7, "data-loop.0", &["user.slice", "build.slice"]),
            thread(8, "cc1", &["build.slice", "deep"]),
            realtime,
            thread(10, "data-loo", &["rebuild.slice"]),
        ];
        let report = report(&rules(AUDIO), &threads, 2, NAMED);
        assert_eq!(
            report.text,
            "line 2: threads whose name begins with `data-loop` need 1ms of CPU time within 4ms \
             of a wake-up, every 4ms (0.25 of a CPU each, criticality 1)\n  \
             matches 2 threads: data-loop.0[7], data-loop.0[9]\n  \
             no effect on 1 of them: real-time threads run before every sched_ext scheduler\n  \
             too wide: any user's thread can take this name; give a user\n\
             line 8: threads in a cgroup called `build.slice` run in the background, without \
             deadlines\n  \
             matches 1 thread: cc1[8]\n\
             2 rules, 1 thread declared now: 0.25 of 2 CPUs\n"
        );
        assert_eq!(report.shadowed, 0);
    }

    #[test]
    fn a_rule_below_one_that_matches_the_same_never_applies() {
        let shadowed = |second: &str| {
            let text = format!("{AUDIO}\n[[rule]]\n{second}\nclass = \"background\"\n");
            report(&rules(&text), &[], 1, NAMED).shadowed
        };
        assert_eq!(shadowed("comm = \"data-loop.0\""), 1);
        assert_eq!(shadowed("comm = \"data-loop*\""), 1);
        assert_eq!(shadowed("comm = \"data-loop.0\"\ncgroup = \"x\""), 1);
        assert_eq!(shadowed("comm = \"cc1\"\ncgroup = \"build.slice\""), 1);
        assert_eq!(shadowed("comm = \"data*\""), 0);
        assert_eq!(shadowed("cgroup = \"build*\""), 0);
        assert_eq!(shadowed("cgroup = \"x\""), 0);
    }

    #[test]
    fn many_threads_are_counted_and_too_much_is_said() {
        let threads: Vec<Thread> = (1..=20).map(|i| thread(i, "data-loop.0", &[])).collect();
        let few = report(&rules(AUDIO), &threads, 4, NAMED).text;
        assert!(few.contains("data-loop.0[8] and 12 more"), "{few}");
        assert!(few.contains("5.00 of 4 CPUs"), "{few}");
        assert!(few.contains("more than the machine has"), "{few}");
        let all = report(&rules(AUDIO), &threads, 8, usize::MAX).text;
        assert!(all.contains("data-loop.0[20]\n"), "{all}");
        assert!(!all.contains("more than"), "{all}");
    }

    #[test]
    fn a_rule_for_a_user_a_path_and_a_number_of_threads_is_not_too_wide() {
        let text = "[[rule]]\ncomm = \"loop*\"\nuser = 1000\ncgroup = \"/audio.slice/pw*\"\n\
            max = 2\nruntime = \"1ms\"\nperiod = \"4ms\"\n";
        let right = ["audio.slice", "pw.service"];
        let mut threads = vec![thread(1, "loop1", &right), thread(2, "loop2", &right)];
        threads.push(thread(3, "loop3", &["audio.slice", "pw.service", "deep"]));
        threads.push(thread(
            4,
            "loop4",
            &["user.slice", "audio.slice", "pw.service"],
        ));
        threads.push(thread(5, "loop5", &["audio.slice"]));
        let mut foreign = thread(6, "loop6", &right);
        foreign.uids = Some([1000, 0, 0, 0]);
        threads.push(foreign);
        let mut unread = thread(7, "loop7", &right);
        unread.uids = None;
        threads.push(unread);
        assert_eq!(
            report(&rules(text), &threads, 2, NAMED).text,
            "line 1: threads whose name begins with `loop` in the cgroup `/audio.slice/pw*` of user \
             `1000`, at most 2 of them, need 1ms of CPU time within 4ms of a wake-up, every 4ms \
             (0.25 of a CPU each)\n  \
             matches 3 threads: loop1[1], loop2[2], loop3[3]\n  \
             no effect on 1 of them: max is 2\n\
             1 rule, 2 threads declared now: 0.50 of 2 CPUs\n"
        );
        let mut of_another = thread(8, "data-loop.1", &[]);
        of_another.uids = Some([1001; 4]);
        let wide = report(
            &rules(AUDIO),
            &[thread(7, "data-loop.0", &[]), of_another],
            2,
            NAMED,
        )
        .text;
        assert!(
            wide.contains("too wide: it matches threads of the users 1000, 1001 now"),
            "{wide}"
        );
    }

    #[test]
    fn cgroups_are_read_as_deep_as_the_scheduler_looks() {
        let bpf = include_str!("../../bpf/params.bpf.h");
        assert!(bpf.contains(&format!("#define CGROUP_LEVELS {CGROUP_LEVELS}\n")));
        assert_eq!(names(&"/a".repeat(40)).len(), CGROUP_LEVELS);
    }

    #[test]
    fn threads_are_read_from_proc() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("41/task/42");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(proc.path().join("self/task/1")).unwrap();
        // A thread that has gone leaves nothing to read.
        fs::create_dir_all(proc.path().join("41/task/43")).unwrap();
        fs::write(folder.join("comm"), "a) b\n").unwrap();
        fs::write(folder.join("cgroup"), "4:cpu:/x\n0::/user.slice/app\n").unwrap();
        fs::copy("/proc/self/status", folder.join("status")).unwrap();
        let (before, after) = (["0"; 37].join(" "), ["0"; 11].join(" "));
        fs::write(
            folder.join("stat"),
            format!("42 (a) b) S {before} 1 {after}\n"),
        )
        .unwrap();
        let mut expected = thread(42, "a) b", &["user.slice", "app"]);
        expected.is_realtime = true;
        // SAFETY: getuid has no arguments.
        expected.uids = Some([unsafe { libc::getuid() }; 4]);
        assert_eq!(threads(proc.path()), [expected]);
    }
}
