//! Partitioned scheduling: every task is bound to one core, every core runs its
//! own copy of a policy. Tasks are placed worst fit, the heaviest first, which
//! balances the load (first fit fills cores to the brim, which only helps a
//! schedulability test).

use super::{Plan, Policy, View};
use crate::sim::engine::{CoreId, ReadyJob, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, NEVER};

/// One core and its policy, which is only asked when its own jobs have changed or
/// the time has come that it named.
struct Local {
    policy: Box<dyn Policy>,
    jobs: Vec<ReadyJob>,
    /// Which jobs it has, as a sum of hashes, now and when it was asked last.
    present: u64,
    seen: Option<u64>,
    choice: Option<TaskId>,
    wake: Ns,
}

impl Local {
    fn must_be_asked(&self, now: Ns) -> bool {
        self.wake <= now || self.seen != Some(self.present)
    }
}

/// A job as a number; a sum of these says in whatever order which jobs there are.
fn identity(job: &ReadyJob) -> u64 {
    let id = u64::from(job.task) << 32 | u64::from(job.index);
    let mixed = (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD134_2543_DE82_EF95)
}

pub struct Partitioned {
    make: fn() -> Box<dyn Policy>,
    locals: Vec<Local>,
    home: Vec<CoreId>,
    plan: Plan,
}

impl Partitioned {
    pub fn new(make: fn() -> Box<dyn Policy>) -> Self {
        Self {
            make,
            locals: Vec::new(),
            home: Vec::new(),
            plan: Plan::default(),
        }
    }
}

impl Policy for Partitioned {
    fn start(&mut self, set: &TaskSet, cores: usize) {
        self.locals.clear();
        for _ in 0..cores {
            let mut policy = (self.make)();
            policy.start(set, 1);
            self.locals.push(Local {
                policy,
                jobs: Vec::new(),
                present: 0,
                seen: None,
                choice: None,
                wake: NEVER,
            });
        }
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
        for local in &mut self.locals {
            local.jobs.clear();
            local.present = 0;
        }
        for job in view.jobs {
            let local = &mut self.locals[self.home[job.task as usize] as usize];
            local.present = local.present.wrapping_add(identity(job));
        }
        // Only who is asked needs to see its jobs.
        for job in view.jobs {
            let local = &mut self.locals[self.home[job.task as usize] as usize];
            if local.must_be_asked(view.now) {
                local.jobs.push(*job);
            }
        }
        for (core, local) in self.locals.iter_mut().enumerate() {
            if local.must_be_asked(view.now) {
                let own = View {
                    cores: 1,
                    jobs: &local.jobs,
                    ..*view
                };
                self.plan.clear();
                local.policy.decide(&own, &mut self.plan);
                local.choice = self.plan.entries().first().map(|e| e.0);
                local.wake = self.plan.wake();
                local.seen = Some(local.present);
            }
            if let Some(task) = local.choice {
                plan.run_on(task, core as CoreId);
            }
            plan.wake_at(local.wake);
        }
    }
}
