//! A [`Decider`] at the wheel of the simulator: what is trained and judged is
//! what runs beside the kernel.

use crate::policy::network::Native;
use crate::policy::{Context, Decider, Decision, PolicyConfig, Scorer, Situation};
use crate::sim::engine::{Plan, View};
use crate::sim::policies::Policy;
use crate::sim::situation::Situations;
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};

/// On several cores a decision stands for this long at most: whoever has less
/// slack must run, as with the tick of least laxity first.
const TICK: Ns = MS;

/// The simulator's state in the words of the policy.
#[derive(Clone, Debug)]
pub struct Glass(Situations);

impl Default for Glass {
    fn default() -> Glass {
        Glass(Situations::new(TICK))
    }
}

impl Glass {
    pub fn start(&mut self, set: &TaskSet) {
        self.0.start(set);
    }

    pub fn look(&mut self, view: &View) -> Situation<'_> {
        let hold_ns = hold(view) as i64;
        Situation {
            hold_ns,
            ..self.0.of(view)
        }
    }
}

/// Until when a decision stands: on one core to the next known event, on
/// several a tick. A shorter one on one core would ask more often and, where
/// times are hidden, give up jobs that have just outlived their estimate.
fn hold(view: &View) -> Ns {
    let event = view.next_boundary.saturating_sub(view.now).max(1);
    let hold = match view.cores {
        1 => event.min(100 * MS),
        _ => TICK.min(event),
    };
    hold.max(view.options.quantum_ns) + view.options.decision_latency_ns
}

/// Runs everybody where nobody has to wait; the policy need not be asked.
pub fn run_all(view: &View, plan: &mut Plan) -> bool {
    let uncontested = view.jobs.len() <= view.cores;
    if uncontested {
        view.jobs.iter().for_each(|job| plan.run(job.task));
    }
    uncontested
}

/// The decision as a plan, and when to ask again.
pub fn carry_out(decision: &Decision, view: &View, plan: &mut Plan) {
    for (cpu, job) in decision.assignment.iter() {
        plan.run_on(view.jobs[job].task, cpu.into());
    }
    if view.jobs.len() > view.cores && (view.cores > 1 || decision.late_due) {
        plan.wake_at((view.now / TICK + 1) * TICK);
    }
}

/// A scorer as a simulator policy.
#[derive(Clone, Debug)]
pub struct Driver<S> {
    decider: Decider,
    scorer: S,
    glass: Glass,
}

impl<S: Scorer> Driver<S> {
    pub fn new(config: PolicyConfig, scorer: S) -> Driver<S> {
        Driver {
            decider: Decider::new(config),
            scorer,
            glass: Glass::default(),
        }
    }
}

impl<S: Scorer> Policy for Driver<S> {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.decider = Decider::new(self.decider.config().clone());
        self.glass.start(set);
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        if run_all(view, plan) {
            return;
        }
        let situation = self.glass.look(view);
        let decision = self.decider.decide(&mut self.scorer, &situation);
        carry_out(decision, view, plan);
    }
}

/// The network as a scorer.
#[derive(Clone, Debug)]
pub struct Greedy(pub Native);

impl Scorer for Greedy {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        let q = self
            .0
            .forward(context.tokens, context.situation.cpus.count());
        context.tokens.spread(q, scores);
    }
}
