//! Partitioned scheduling: every task is bound to one core, every core runs its
//! own copy of a policy. Tasks are placed worst fit, the heaviest first, which
//! balances the load (first fit fills cores to the brim, which only helps a
//! schedulability test).

use super::{Key, Plan, Policy, View};
use crate::sim::engine::{CoreId, MinTree, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, NEVER};

/// One core and its policy, which is only asked when its own jobs have changed or
/// the time has come that it named.
struct Local {
    policy: Box<dyn Policy>,
    /// By task: the keys of its jobs, where the policy has a fixed order.
    queue: Option<(Key, MinTree)>,
    /// Its share of what a view tells.
    running: Vec<TaskId>,
    touched: Vec<TaskId>,
    must_be_asked: bool,
    choice: Option<TaskId>,
    wake: Ns,
}

impl Local {
    /// The job to run by an order that is fixed; on a tie the running one stays.
    fn choose_by_key(&mut self, view: &View) {
        let Some((key, queue)) = &mut self.queue else {
            return;
        };
        for &task in &self.touched {
            let job = view.job_of(task);
            let value = job.map_or(NEVER, |job| key.of(job, view.task(job)));
            queue.set(task as usize, value);
        }
        let least = queue.min();
        let stays = |task: &&TaskId| queue.get(**task as usize) == least;
        let first = (least != NEVER).then(|| queue.argmin() as TaskId);
        self.choice = self.running.iter().filter(stays).min().copied().or(first);
    }

    fn choose(&mut self, view: &View, plan: &mut Plan) {
        let own = View {
            cores: 1,
            running: &self.running,
            touched: &self.touched,
            ..*view
        };
        plan.clear();
        self.policy.decide(&own, plan);
        self.choice = plan.entries().first().map(|e| e.0);
        self.wake = plan.wake();
    }
}

pub struct Partitioned {
    make: fn() -> Box<dyn Policy>,
    locals: Vec<Local>,
    home: Vec<CoreId>,
    /// By task: the job it had when its core was told last.
    known: Vec<Option<u32>>,
    plan: Plan,
}

impl Partitioned {
    /// The policy must go by [`View::running`] and [`View::touched`]: the jobs it
    /// sees are those of all cores.
    pub fn new(make: fn() -> Box<dyn Policy>) -> Self {
        Self {
            make,
            locals: Vec::new(),
            home: Vec::new(),
            known: Vec::new(),
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
            let key = policy.key();
            self.locals.push(Local {
                policy,
                queue: key.map(|key| (key, MinTree::new(set.tasks.len()))),
                running: Vec::new(),
                touched: Vec::new(),
                must_be_asked: true,
                choice: None,
                wake: NEVER,
            });
        }
        self.known = vec![None; set.tasks.len()];
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
        for &task in view.touched {
            let job = view.job_of(task).map(|job| job.index);
            let known = &mut self.known[task as usize];
            let local = &mut self.locals[self.home[task as usize] as usize];
            local.touched.push(task);
            local.must_be_asked |= std::mem::replace(known, job) != job;
        }
        for &task in view.running {
            let local = &mut self.locals[self.home[task as usize] as usize];
            local.running.push(task);
        }
        for (core, local) in self.locals.iter_mut().enumerate() {
            if local.must_be_asked || local.wake <= view.now {
                match local.queue {
                    Some(_) => local.choose_by_key(view),
                    None => local.choose(view, &mut self.plan),
                }
                local.touched.clear();
                local.must_be_asked = false;
            }
            local.running.clear();
            if let Some(task) = local.choice {
                plan.run_on(task, core as CoreId);
            }
            plan.wake_at(local.wake);
        }
    }
}
