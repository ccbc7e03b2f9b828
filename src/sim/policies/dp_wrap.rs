//! DP-Wrap (Levin et al. 2010): optimal on m cores for implicit deadlines, it
//! meets everything up to U = m.
//!
//! Between two boundaries (releases and deadlines of anybody) every job gets the
//! share of time its remaining work is of its remaining window; the shares are
//! laid end to end and wrapped around the cores (McNaughton). When they do not
//! all fit, the later deadlines go short.

use super::{Plan, Policy, View};
use crate::sim::engine::{CoreId, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, NEVER};

#[derive(Clone, Copy, Debug)]
struct Piece {
    task: TaskId,
    core: CoreId,
    end: Ns,
}

#[derive(Default)]
pub struct DpWrap {
    slice_end: Ns,
    /// By core, and without gaps from the start of the slice.
    pieces: Vec<Piece>,
    /// By core: the first of its pieces that is not over.
    next: Vec<usize>,
    last_arrival: Ns,
    shares: Vec<(Ns, TaskId, Ns)>,
}

impl DpWrap {
    fn lay_out(&mut self, view: &View) {
        let now = view.now;
        let end = view
            .jobs
            .iter()
            .map(|job| job.deadline)
            .filter(|&d| d > now)
            .fold(view.next_boundary, Ns::min);
        self.slice_end = end;
        self.pieces.clear();
        self.next.clear();
        if end == NEVER || end <= now {
            return;
        }
        let length = end - now;
        self.shares.clear();
        for job in view.jobs {
            let window = job.deadline.saturating_sub(now);
            // Rounded up: a nanosecond early now is a nanosecond spared later.
            let share = if window <= length {
                job.remaining
            } else {
                let fluid = u128::from(job.remaining) * u128::from(length);
                fluid.div_ceil(u128::from(window)) as Ns
            };
            let share = share.min(length).min(job.remaining);
            self.shares.push((job.deadline, job.task, share));
        }
        self.shares.sort_unstable();
        let (mut core, mut at) = (0, now);
        for &(_, task, share) in &self.shares {
            let mut left = share;
            while left > 0 && core < view.cores {
                let stretch = left.min(end - at);
                if at == now {
                    self.next.push(self.pieces.len());
                }
                self.pieces.push(Piece {
                    task,
                    core: core as CoreId,
                    end: at + stretch,
                });
                left -= stretch;
                at += stretch;
                if at == end {
                    core += 1;
                    at = now;
                }
            }
        }
    }
}

impl Policy for DpWrap {
    fn start(&mut self, _set: &TaskSet, _cores: usize) {
        *self = Self {
            last_arrival: NEVER,
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let touched = view.touched.iter().filter_map(|&task| view.job_of(task));
        if touched.into_iter().any(|job| job.release == view.now) {
            self.last_arrival = view.now;
        }
        if view.now >= self.slice_end || self.last_arrival == view.now {
            self.lay_out(view);
        }
        let mut next = self.slice_end;
        for (core, at) in self.next.iter_mut().enumerate() {
            let own = |piece: &&Piece| piece.core as usize == core;
            let over = |piece: &Piece| piece.end <= view.now;
            while self.pieces.get(*at).filter(own).is_some_and(over) {
                *at += 1;
            }
            if let Some(piece) = self.pieces.get(*at).filter(own) {
                plan.run_on(piece.task, piece.core);
                next = next.min(piece.end);
            }
        }
        if next != NEVER {
            plan.wake_at(next);
        }
    }
}
