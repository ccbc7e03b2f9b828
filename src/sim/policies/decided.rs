//! What runs in the kernel, here: [`Decider`] with any scorer.

use super::{Plan, Policy, View};
use crate::policy::{
    Decider, Decision, OverloadRule, PolicyConfig, Quantiser, Scorer, ShieldMode, Tokenizer,
};
use crate::sim::engine::CoreId;
use crate::sim::situation::{hold, Situations, TICK};
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::MS;

pub struct Decided<S> {
    config: PolicyConfig,
    scorer: S,
    decider: Decider,
    situations: Situations,
    /// The machine settles what the shield gives up.
    settles: bool,
    at_events_only: bool,
}

impl<S: Scorer> Decided<S> {
    pub fn new(config: PolicyConfig, scorer: S) -> Self {
        Self::seeing(Situations::new(), config, scorer)
    }

    /// The same, giving up what suits the machine: jobs or tasks.
    pub fn for_machine(config: PolicyConfig, scorer: S) -> Self {
        Self {
            settles: true,
            ..Self::new(config, scorer)
        }
    }

    /// The scorer alone, with slack bins as the paper has them, blind to what is to
    /// come, and asked only when something happens.
    pub fn bare(scorer: S) -> Self {
        let config = PolicyConfig {
            shield: ShieldMode::Off,
            ..in_paper_bins()
        };
        Self {
            at_events_only: true,
            ..Self::seeing(Situations::of_jobs_alone(), config, scorer)
        }
    }

    /// The same under the shield.
    pub fn shielded(scorer: S) -> Self {
        Self::for_machine(in_paper_bins(), scorer)
    }

    fn seeing(situations: Situations, config: PolicyConfig, scorer: S) -> Self {
        Self {
            decider: Decider::new(config.clone()),
            config,
            scorer,
            situations,
            settles: false,
            at_events_only: false,
        }
    }

    pub fn decider(&self) -> &Decider {
        &self.decider
    }
}

/// The paper's slack bins are uniform; it does not print their width, so these
/// are 64 of 2 ms.
pub(super) fn paper_slack_bins() -> Quantiser {
    Quantiser::uniform(2 * MS as i64, 64).expect("ascending edges")
}

/// Its rule looks at nothing else in bins.
fn in_paper_bins() -> PolicyConfig {
    let one = Quantiser::uniform(2 * MS as i64, 1).expect("ascending edges");
    let tokenizer = Tokenizer::new(paper_slack_bins(), one, 1, 1);
    PolicyConfig {
        tokenizer: tokenizer.expect("levels within limits"),
        ..PolicyConfig::default()
    }
}

impl<S: Scorer> Policy for Decided<S> {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.decider = Decider::new(self.config.clone());
        self.situations.start(set);
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let rule = overload_rule(view.options.semantics, view.cores);
        if self.settles && self.config.shield_config.overload != rule {
            self.config.shield_config.overload = rule;
            self.decider = Decider::new(self.config.clone());
        }
        if !self.config.may_idle && run_all(view, plan) {
            return;
        }
        let situation = self.situations.of(view);
        self.decider.decide(&mut self.scorer, &situation);
        self.situations.note(&self.decider);
        let decision = self.decider.decision();
        carry_out(decision, view, plan);
        if !self.at_events_only {
            ask_again(decision, view, plan);
        }
    }
}

/// What to give up on such a machine: jobs where late ones are thrown away, whole
/// tasks where they go on. With several cores whole tasks, too: admission job by
/// job, which then tests total work only, meets 0.3 to 1.4 points less on few heavy
/// tasks.
pub fn overload_rule(semantics: Semantics, cores: usize) -> OverloadRule {
    match (semantics, cores) {
        (Semantics::Abort, 1) => OverloadRule::Admit,
        _ => OverloadRule::Keep,
    }
}

/// Runs all jobs where none has to wait: as in the kernel, nothing is decided then.
pub fn run_all(view: &View, plan: &mut Plan) -> bool {
    let uncontested = view.jobs.len() <= view.cores;
    if uncontested {
        view.jobs.iter().for_each(|job| plan.run(job.task));
    }
    uncontested
}

/// The decision as a plan.
pub fn carry_out(decision: &Decision, view: &View, plan: &mut Plan) {
    for (cpu, job) in decision.assignment.iter() {
        plan.run_on(view.jobs[job].task, CoreId::from(cpu));
    }
}

/// When to ask again if nothing happens. A task that is served only because it has waited
/// for long is served for a tick.
pub fn ask_again(decision: &Decision, view: &View, plan: &mut Plan) {
    let soon = view.cores > 1 || decision.late_due;
    plan.wake_at(match soon {
        true => (view.now / TICK + 1) * TICK,
        false => view.now + hold(view),
    });
}
