//! What a person needs to know of a broken promise: what it was, what was done before, and
//! what the tasks concerned are doing.
use crate::checks::Violation;
use crate::director::{Director, MS};
use std::fs::read_to_string;

const EVENTS_SHOWN: usize = 10;

impl Director {
    pub fn report(&self, violation: &Violation) {
        let (what, concerned) = self.explain(violation);
        println!("violation: {what}");
        println!(
            "seed {}, {} s, at {:.3} s: {}",
            self.story.seed,
            self.story.seconds,
            self.clock_ms() as f64 / 1000.0,
            self.story.machine
        );
        println!("the last events, of {}:", self.done.len());
        let skipped = self.done.len().saturating_sub(EVENTS_SHOWN);
        for &event in &self.done[skipped..] {
            let happened = &self.story.events[event];
            println!(
                "  event {event}: {:.3} s {}",
                happened.at_ms as f64 / 1000.0,
                happened.what
            );
        }
        println!("CPUs offline: {}", self.offline);
        for at in concerned {
            self.show_member(at);
        }
        // What a script that shrinks the story wants: no later event matters.
        let _ = std::fs::write(
            self.folder.join("violation"),
            format!(
                "{what}\nevents={}\n",
                crate::sets::to_list(self.done.iter().copied())
            ),
        );
    }

    fn explain(&self, violation: &Violation) -> (String, Vec<usize>) {
        match violation {
            Violation::Complaint(line) => {
                let stuck = (0..self.members.len())
                    .filter(|&at| {
                        let pid = self.members[at].pid().unwrap_or(0);
                        let partner = self.partner(at);
                        [pid, partner]
                            .iter()
                            .any(|pid| *pid > 0 && line.contains(&format!("[{pid}]")))
                    })
                    .collect();
                (format!("the kernel complained: {line}"), stuck)
            }
            Violation::Unloaded(state) => (
                format!("the scheduler is not in charge: {state}"),
                Vec::new(),
            ),
            Violation::NotReloaded => (
                "the scheduler was told to load again, and is not loaded".into(),
                Vec::new(),
            ),
            Violation::Waited(who, ns, at) => (
                format!("{who} waited for {} ms", ns / MS),
                at.iter().copied().collect(),
            ),
            Violation::WrongCpu(at, how) => {
                (format!("task {} {how}", self.members[*at].task), vec![*at])
            }
            Violation::Lost(who) => {
                let tasks: Vec<usize> = who.iter().map(|&at| self.members[at].task).collect();
                (format!("lost tasks: {tasks:?}"), who.clone())
            }
            Violation::Ended(at, status) => (
                format!("task {} ended by itself: {status}", self.members[*at].task),
                vec![*at],
            ),
            Violation::Errand(pid) => (format!("scx_temponet hint never ended: {pid}"), Vec::new()),
        }
    }

    fn partner(&self, at: usize) -> i32 {
        let slot = self.shared.slot(self.members[at].task);
        slot.partner.load(std::sync::atomic::Ordering::SeqCst) as i32
    }

    fn show_member(&self, at: usize) {
        let member = &self.members[at];
        println!("task {}: {}", member.task, member.what);
        for pid in [member.pid().unwrap_or(0), self.partner(at)] {
            if pid > 0 {
                show_process(pid);
            }
        }
    }
}

fn show_process(pid: i32) {
    println!("process {pid}:");
    let wanted = [
        "Name:",
        "State:",
        "Cpus_allowed_list:",
        "voluntary_ctxt_switches:",
        "nonvoluntary_ctxt_switches:",
    ];
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    for line in status.lines() {
        if wanted.iter().any(|name| line.starts_with(name)) {
            println!("  {line}");
        }
    }
    for file in ["cgroup", "schedstat", "wchan", "stack"] {
        let text = read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        println!("  {file}: {}", text.trim().replace('\n', " | "));
    }
}
