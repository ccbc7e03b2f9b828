//! The paper's sparse attention (its appendix on block Top-k): rows in order
//! of deadline, full attention inside a chunk, and of every other chunk only
//! the k largest logits of each block of B keys.
//!
//! A logit must be known before it can be dropped, so that part stays
//! quadratic; what is saved are the exponentials and the mixing.

use super::kernels::{mix, scores, take_queries, Attention, Rows, Scratch};
use super::lanes::{Lanes, Sixteen, LANES};
use crate::policy::mitigation::SparsePlan;
use std::ops::Range;

/// As [`super::kernels::attend`], with row 0 (idle) attending to all and
/// attended to by all, and the other rows sparse. Logits that tie with the
/// k-th are kept: equal jobs must not get different answers.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn attend<L: Lanes>(
    of: &Attention<'_>,
    plan: &SparsePlan,
    scratch: &mut Scratch,
    out: &mut Rows,
) {
    let n = of.check(out);
    scratch.prepare(of.width, n);
    scratch.top.resize(plan.keep.max(1), Sixteen::default());
    for head in 0..of.heads {
        if n > 0 {
            group::<L>(of, plan, head, 0..1, 0..n, scratch, out);
        }
        for chunk in pieces(1..n, plan.chunk) {
            for queries in pieces(chunk.clone(), LANES) {
                group::<L>(of, plan, head, queries, chunk.clone(), scratch, out);
            }
        }
    }
}

/// A range in pieces of this length, the last one shorter.
pub fn pieces(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let (start, end, length) = (range.start, range.end, length.max(1));
    (start..end)
        .step_by(length)
        .map(move |first| first..end.min(first + length))
}

/// Up to sixteen queries that see all of `near` and the best of the rest.
#[inline(always)]
unsafe fn group<L: Lanes>(
    of: &Attention<'_>,
    plan: &SparsePlan,
    head: usize,
    queries: Range<usize>,
    near: Range<usize>,
    scratch: &mut Scratch,
    out: &mut Rows,
) {
    let n = of.bias.len();
    take_queries(of, head, queries.clone(), &mut scratch.queries);
    scratch.weights.resize(n, Sixteen::default());
    let most = scores::<L>(of, head, 0..n, scratch);
    scratch.keys.clear();
    let mut total = L::splat(0.0);
    let everything = L::splat(f32::MIN);
    if near.start > 0 {
        keep::<L>(0..1, everything, most, &mut total, scratch);
    }
    for chunk in pieces(1..near.start.max(1), plan.chunk) {
        for block in pieces(chunk, plan.block) {
            let threshold = kth_largest::<L>(block.clone(), scratch);
            keep::<L>(block, threshold, most, &mut total, scratch);
        }
    }
    keep::<L>(near.clone(), everything, most, &mut total, scratch);
    for chunk in pieces(near.end..n, plan.chunk) {
        for block in pieces(chunk, plan.block) {
            let threshold = kth_largest::<L>(block.clone(), scratch);
            keep::<L>(block, threshold, most, &mut total, scratch);
        }
    }
    mix::<L, _>(of, head, queries, total, scratch, kept_keys, out);
}

/// Weights of the keys whose logit reaches the threshold in any lane, moved to
/// the front. Nobody reads there any more: keys come in order, and there are
/// never more kept than seen.
#[inline(always)]
unsafe fn keep<L: Lanes>(
    keys: Range<usize>,
    threshold: L::Floats,
    most: L::Floats,
    total: &mut L::Floats,
    scratch: &mut Scratch,
) {
    for key in keys {
        let logit = L::load(&scratch.weights[key]);
        if L::any_ge(logit, threshold) {
            let weight = L::exp(L::sub(logit, most));
            let weight = L::keep_where_ge(logit, threshold, weight);
            *total = L::add(*total, weight);
            L::store(&mut scratch.weights[scratch.keys.len()], weight);
            scratch.keys.push(key as u32);
        }
    }
}

fn kept_keys(scratch: &Scratch) -> impl Iterator<Item = usize> + '_ {
    scratch.keys.iter().map(|&key| key as usize)
}

/// For every lane the k-th largest logit of a block; the least float if there
/// are fewer.
#[inline(always)]
unsafe fn kth_largest<L: Lanes>(block: Range<usize>, scratch: &mut Scratch) -> L::Floats {
    let Scratch { weights, top, .. } = scratch;
    for place in top.iter_mut() {
        L::store(place, L::splat(f32::MIN));
    }
    for logit in &weights[block] {
        let mut falling = L::load(logit);
        for place in top.iter_mut() {
            let held = L::load(place);
            L::store(place, L::max(held, falling));
            falling = L::min(held, falling);
        }
    }
    L::load(&top[top.len() - 1])
}
