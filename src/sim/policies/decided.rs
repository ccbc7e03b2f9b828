//! What runs in the kernel, here: [`Decider`] with any scorer.

use super::{Plan, Policy, View};
use crate::policy::{Decider, PolicyConfig, Quantiser, Scorer, ShieldMode, Tokenizer};
use crate::sim::engine::CoreId;
use crate::sim::situation::{Situations, HOLD_NS};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};

pub struct Decided<S> {
    config: PolicyConfig,
    scorer: S,
    decider: Decider,
    situations: Situations,
}

impl<S: Scorer> Decided<S> {
    pub fn new(config: PolicyConfig, scorer: S) -> Self {
        Self::holding(HOLD_NS, config, scorer)
    }

    /// The same for decisions that stand this long where nothing happens.
    pub fn holding(hold_ns: Ns, config: PolicyConfig, scorer: S) -> Self {
        let situations = match config.shield {
            ShieldMode::On => Situations::new(hold_ns),
            ShieldMode::Off => Situations::of_jobs_alone(hold_ns),
        };
        Self {
            decider: Decider::new(config.clone()),
            config,
            scorer,
            situations,
        }
    }

    /// The scorer alone, with slack bins as the paper has them.
    pub fn bare(scorer: S) -> Self {
        let config = PolicyConfig {
            shield: ShieldMode::Off,
            ..in_paper_bins()
        };
        Self::new(config, scorer)
    }

    /// The same under the shield.
    pub fn shielded(scorer: S) -> Self {
        Self::new(in_paper_bins(), scorer)
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
        // As in the kernel, nobody is asked where everybody can run.
        if view.jobs.len() <= view.cores && !self.config.may_idle {
            view.jobs.iter().for_each(|job| plan.run(job.task));
            return;
        }
        let hold_ns = self.situations.hold_of(view);
        let situation = self.situations.of(view);
        let decision = self.decider.decide(&mut self.scorer, &situation);
        for (cpu, job) in decision.assignment.iter() {
            plan.run_on(view.jobs[job].task, CoreId::from(cpu));
        }
        // What the shield allows it allows for that long only.
        if self.config.shield == ShieldMode::On {
            plan.wake_at(view.now + hold_ns);
        }
    }
}
