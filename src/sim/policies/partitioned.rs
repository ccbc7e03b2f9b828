//! Partitioned scheduling: every task is bound to one core, every core runs its
//! own copy of a policy. Tasks are placed worst fit, the heaviest first, which
//! balances the load (first fit fills cores to the brim, which only helps a
//! schedulability test).

use super::{Plan, Policy, View};
use crate::sim::engine::{CoreId, ReadyJob};
use crate::sim::task::TaskSet;

pub struct Partitioned {
    make: fn() -> Box<dyn Policy>,
    locals: Vec<Box<dyn Policy>>,
    home: Vec<CoreId>,
    /// The jobs of each core.
    jobs: Vec<Vec<ReadyJob>>,
    plan: Plan,
}

impl Partitioned {
    pub fn new(make: fn() -> Box<dyn Policy>) -> Self {
        Self {
            make,
            locals: Vec::new(),
            home: Vec::new(),
            jobs: Vec::new(),
            plan: Plan::default(),
        }
    }
}

impl Policy for Partitioned {
    fn start(&mut self, set: &TaskSet, cores: usize) {
        self.locals = (0..cores).map(|_| (self.make)()).collect();
        for local in &mut self.locals {
            local.start(set, 1);
        }
        self.jobs = vec![Vec::new(); cores];
        let mut heaviest_first: Vec<usize> = (0..set.tasks.len()).collect();
        heaviest_first.sort_by(|&a, &b| {
            let (a, b) = (&set.tasks[a], &set.tasks[b]);
            b.utilisation().total_cmp(&a.utilisation())
        });
        let mut load = vec![0.0; cores];
        self.home = vec![0; set.tasks.len()];
        for id in heaviest_first {
            let lightest = (0..cores)
                .min_by(|&a, &b| f64::total_cmp(&load[a], &load[b]))
                .unwrap_or(0);
            load[lightest] += set.tasks[id].utilisation();
            self.home[id] = lightest as CoreId;
        }
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.jobs.iter_mut().for_each(Vec::clear);
        for job in view.jobs {
            self.jobs[self.home[job.task as usize] as usize].push(*job);
        }
        for (core, local) in self.locals.iter_mut().enumerate() {
            let own = View {
                cores: 1,
                jobs: &self.jobs[core],
                ..*view
            };
            self.plan.clear();
            local.decide(&own, &mut self.plan);
            if let Some(&(task, _)) = self.plan.entries().first() {
                plan.run_on(task, core as CoreId);
            }
            plan.wake_at(self.plan.wake());
        }
    }
}
