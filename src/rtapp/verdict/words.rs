//! The verdict in sentences. Every figure in them is one of the verdict's.

use super::{Change, Feasible, Needs, Obstacle, ReplayVerdict, Standing};

/// Threads named in one sentence; the rest are counted.
const MOST_NAMES: usize = 3;
/// CPUs that one scheduler must spend more than the winner before it is called the reason.
const NOTABLE_CPUS: f64 = 0.05;

pub(super) fn write(verdict: &mut ReplayVerdict, failed: &[(&str, &str)]) {
    verdict.headline = headline(verdict);
    verdict.why = why(verdict);
    verdict.losses = losses(verdict, failed);
    verdict.change = verdict.changes.iter().map(change).collect();
    verdict.enough = enough(verdict);
}

fn headline(verdict: &ReplayVerdict) -> String {
    let all = &verdict.schedulers;
    let best: Vec<&Standing> = all.iter().filter(|s| s.best).collect();
    let Some(first) = all.first() else {
        return "No scheduler was compared.".into();
    };
    let Some(winner) = best.first() else {
        return "No job has a deadline inside this time: there is nothing to judge.".into();
    };
    let names = |of: &[&Standing]| listed(of.iter().map(|s| s.scheduler.as_str()), usize::MAX);
    if all.len() == 1 {
        return match first.all_met() {
            true => format!(
                "{} meets every deadline: all {} jobs are on time.",
                first.scheduler, first.jobs
            ),
            false => format!(
                "{} has {}; {} of {} are missed.",
                first.scheduler,
                on_time(&best),
                first.misses(),
                first.jobs
            ),
        };
    }
    let rest: Vec<&Standing> = all.iter().filter(|s| !s.best).collect();
    if winner.all_met() {
        let meet = if best.len() == 1 { "meets" } else { "meet" };
        let not = if rest.len() == 1 { "does" } else { "do" };
        return match rest.is_empty() {
            true => format!("{} every deadline.", every(all.len(), "schedulers meet")),
            false => format!(
                "{} {meet} every deadline; {} {not} not.",
                names(&best),
                names(&rest)
            ),
        };
    }
    let next = next_best(&rest).map_or(String::new(), |next| {
        format!("; {} comes next with {}", next.scheduler, result(next))
    });
    if best.len() == 1 {
        return format!("{} wins with {}{next}.", winner.scheduler, on_time(&best));
    }
    let who = match rest.is_empty() {
        true => every(all.len(), "schedulers are"),
        false => format!("{} are", names(&best)),
    };
    format!("{who} level with {}{next}.", on_time(&best))
}

fn every(n: usize, what: &str) -> String {
    match n {
        2 => format!("Both {what}"),
        _ => format!("All {n} {what}"),
    }
}

fn next_best<'a>(rest: &[&'a Standing]) -> Option<&'a Standing> {
    let key = |s: &Standing| (s.critical_compliance.unwrap_or(1.0), s.compliance);
    let better = |a: &Standing, b: &Standing| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    rest.iter().copied().max_by(|a, b| better(a, b))
}

/// A scheduler's share of all jobs, and of the critical ones where there are any.
fn result(s: &Standing) -> String {
    let critical = s.critical_compliance.map(percent);
    let critical = critical.map_or(String::new(), |critical| {
        format!(" (critical ones: {critical})")
    });
    percent(s.compliance) + &critical
}

/// What several have on time; what they have in common is said once.
fn on_time(best: &[&Standing]) -> String {
    let shares = |of: &dyn Fn(&Standing) -> f64| {
        let texts: Vec<String> = best.iter().map(|s| percent(of(s))).collect();
        match texts.iter().all(|text| *text == texts[0]) {
            true => texts[0].clone(),
            false => listed(texts.iter().map(String::as_str), usize::MAX),
        }
    };
    let all = format!("{} of the jobs on time", shares(&|s| s.compliance));
    match best.iter().all(|s| s.critical_compliance.is_none()) {
        true => all,
        false => {
            let critical = shares(&|s| s.critical_compliance.unwrap_or(1.0));
            format!("{all} (critical ones: {critical})")
        }
    }
}

fn why(verdict: &ReplayVerdict) -> Vec<String> {
    let load = &verdict.load;
    let cpus = load.cpus;
    let mut why = Vec::new();
    let judged = verdict.schedulers.iter().any(|s| s.jobs > 0);
    if !judged {
        return why;
    }
    let slowness = verdict.slowness();
    if let Some(times) = slowness {
        why.push(format!(
            "The work took {times:.2} times as long as the file says: the CPUs were slower than while rt-app's loop was \
             measured, or a host took their time. That is as if {} CPUs were asked of {cpus}.",
            load_figure(load.asked_cpus * times)
        ));
    }
    let asked = format!("{} CPUs are asked of {cpus}", load_figure(load.asked_cpus));
    if let Some(other) = verdict.beyond_the_ceiling() {
        why.push(format!(
            "{asked}, and {} met more than that allows: it had more CPUs, or less to do, than is simulated (--cores).",
            other.scheduler
        ));
        return why;
    }
    match &load.obstacle {
        Some(Obstacle::Overload) => why.push(format!(
            "{asked}: no scheduler can serve all, nor have more than {} of the jobs on time.",
            percent(load.ceiling)
        )),
        Some(Obstacle::TooLong {
            task,
            work_ms,
            time_ms,
        }) => why.push(format!(
            "{asked}, and a job of {task} needs {} of CPU time within {}: one thread can use one CPU only, so no \
             scheduler can serve all.",
            ms(*work_ms),
            ms(*time_ms)
        )),
        Some(Obstacle::Peak { from_ms, to_ms, work_ms }) => why.push(format!(
            "{asked}, but the work comes at once: between {} and {} the jobs need {} of CPU time, and there are {}. \
             No scheduler can serve all.",
            ms(*from_ms),
            ms(*to_ms),
            ms(*work_ms),
            ms((to_ms - from_ms) * cpus as f64)
        )),
        None if load.cannot_last() => why.push(format!(
            "{asked}: this cannot last, and in a longer run no scheduler can serve all."
        )),
        None => {
            let served = verdict.schedulers.iter().any(|s| s.jobs > 0 && s.all_met());
            let fits = match (served || slowness.is_some(), load.feasible) {
                (true, _) => "",
                (false, Feasible::Yes) => ": all of it would fit, so the misses are the schedulers'",
                (false, _) => ": nothing shows whether all of it could be served",
            };
            why.push(format!("{asked}{fits}."));
        }
    }
    if load.background_cpus >= 0.005 {
        why.push(format!(
            "Threads without deadlines would use {} CPUs more; they are not judged.",
            load_figure(load.background_cpus)
        ));
    }
    why
}

fn losses(verdict: &ReplayVerdict, failed: &[(&str, &str)]) -> Vec<String> {
    let winner = verdict.schedulers.iter().find(|s| s.best);
    let missing = verdict.schedulers.iter().filter(|s| s.misses() > 0);
    let mut lines: Vec<String> = missing.map(|s| loss(s, winner)).collect();
    let failed = failed.iter();
    lines.extend(failed.map(|(name, why)| format!("{name} failed: {why}")));
    lines
}

fn loss(s: &Standing, winner: Option<&Standing>) -> String {
    let name = &s.scheduler;
    let (lost, late): (Vec<_>, Vec<_>) = s.late.iter().partition(|thread| thread.lost);
    let threads = |of: &[&super::LateThread]| {
        let texts: Vec<String> = of
            .iter()
            .map(|thread| {
                let mark = if thread.critical { ", critical" } else { "" };
                let share = match thread.met {
                    0 => format!("none of {}", thread.jobs),
                    met => percent(met as f64 / thread.jobs as f64),
                };
                format!("{} ({share}{mark})", thread.name)
            })
            .collect();
        listed(texts.iter().map(String::as_str), MOST_NAMES)
    };
    let mut parts = Vec::new();
    if !lost.is_empty() {
        parts.push(format!("loses {}", threads(&lost)));
    }
    if !late.is_empty() {
        parts.push(format!("is late with {}", threads(&late)));
    }
    parts.push(match (s.late.len(), s.kept) {
        (0, _) => format!(
            "misses {} of {} jobs, but keeps every thread at 99 % or more",
            s.misses(),
            s.jobs
        ),
        (_, 0) => "keeps no thread".into(),
        (_, 1) => "keeps the other one".into(),
        (_, kept) => format!("keeps the other {kept}"),
    });
    let mut text = format!("{name} {}", parts.join("; it "));
    if s.unfinished > 0 {
        let jobs = if s.unfinished == 1 {
            "job is"
        } else {
            "jobs are"
        };
        text += &format!("; {} {jobs} never finished", s.unfinished);
    }
    text += &reason(s, winner).map_or(String::new(), |reason| format!("; {reason}"));
    text + "."
}

/// Where its CPU time went, if that differs from the winner.
fn reason(s: &Standing, winner: Option<&Standing>) -> Option<String> {
    let winner = winner.filter(|_| !s.best)?;
    let more = |own: Option<f64>, other: Option<f64>| {
        let own = own?;
        (own - other.unwrap_or(0.0) > NOTABLE_CPUS).then_some(own)
    };
    if let Some(cpus) = more(s.background_cpus, winner.background_cpus) {
        let cpus = load_figure(cpus);
        return Some(format!("it gives {cpus} CPUs to threads without deadlines"));
    }
    let cpus = load_figure(more(s.late_cpus, winner.late_cpus)?);
    Some(format!("it spends {cpus} CPUs on jobs that come too late"))
}

fn change(change: &Change) -> String {
    match change {
        Change::Cores { at_least } => format!("To serve all, at least {at_least} CPUs are needed."),
        Change::Period {
            thread,
            from_ms,
            to_ms,
        } => format!(
            "All could fit with {thread} every {} instead of {}.",
            ms(*to_ms),
            ms(*from_ms)
        ),
        Change::Demand {
            thread,
            from_cpus,
            to_cpus,
        } => format!(
            "All could fit if {thread} asked for {} CPUs at most instead of {}: less work, or less often.",
            load_figure((to_cpus * 100.0).floor() / 100.0),
            load_figure(*from_cpus)
        ),
        Change::Shorten { thread, work_ms, time_ms } => format!(
            "Give {thread} more than {} (a longer period or deadline), less than {} of work, or a second thread.",
            ms(*time_ms),
            ms(*work_ms)
        ),
        Change::Critical => {
            "Not all can be kept, so say which threads matter: --critical here, hint --criticality for real.".into()
        }
        Change::Declare { with, without } => format!(
            "Declare the deadlines (hint, or rules): {} with them, {} without.",
            percent(*with),
            percent(*without)
        ),
    }
}

/// The least that is as good as the best, and whether it can be had at all.
fn enough(verdict: &ReplayVerdict) -> Option<String> {
    // What a slow machine left over tells nothing about this one at its best.
    if verdict.slowness().is_some() {
        return None;
    }
    let all = &verdict.schedulers;
    let best = all.iter().filter(|s| s.best);
    let least = best.clone().min_by_key(|s| s.needs)?;
    let most = all
        .iter()
        .map(|s| s.needs)
        .filter(|&n| n < Needs::Nowhere)
        .max();
    let (name, how) = (&least.scheduler, &least.means.how);
    match least.needs {
        Needs::Kernel if most > Some(Needs::Kernel) => Some(format!(
            "{name} does as well as any of these: {how} is enough, and nothing need be loaded."
        )),
        Needs::Scheduler if most > Some(Needs::Scheduler) => Some(format!(
            "{name} does as well as any of these: {how} is enough, and no network is needed."
        )),
        Needs::Nowhere if all.len() > 1 => {
            let real: Vec<&Standing> = all
                .iter()
                .filter(|s| s.needs < Needs::Nowhere && s.jobs > 0)
                .collect();
            let next = next_best(&real)?;
            let it = if best.count() == 1 {
                format!("{name} is")
            } else {
                "The winners are".into()
            };
            Some(format!(
                "{it} not for loading; of those that are, {} comes nearest with {} ({}).",
                next.scheduler,
                result(next),
                next.means.how
            ))
        }
        _ => None,
    }
}

/// Never "100 %" while anything is missed.
pub fn percent(share: f64) -> String {
    match share >= 1.0 {
        true => "100 %".into(),
        false => format!("{:.1} %", (share * 1000.0 + 1e-6).floor() / 10.0),
    }
}

fn load_figure(cpus: f64) -> String {
    format!("{cpus:.2}")
}

/// As many digits as say something.
fn ms(ms: f64) -> String {
    let text = format!("{ms:.3}");
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// "a", "a and b", "a, b and c", "a, b, c and 4 others".
fn listed<'a>(items: impl Iterator<Item = &'a str>, most: usize) -> String {
    let mut items: Vec<String> = items.map(str::to_owned).collect();
    // One more name is shorter than "and 1 other".
    if items.len() > most.saturating_add(1) {
        let others = items.len() - most;
        items.truncate(most);
        items.push(format!("{others} others"));
    }
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
