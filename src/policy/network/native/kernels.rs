//! The four steps of a block, written once over [`Lanes`].
//!
//! Matrices go by rows, with outputs in the lanes; attention goes with queries
//! in the lanes, so that no step but the norm needs a sum across them.

use super::lanes::{flat, flat_mut, padded, panels, Lanes, Sixteen, LANES};
use crate::policy::network::NORM_EPSILON;

/// One row per token, each filled up to whole panels with zeros.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    rows: usize,
    panels: usize,
    values: Vec<Sixteen>,
}

impl Rows {
    pub fn new(width: usize) -> Rows {
        Rows {
            rows: 0,
            panels: panels(width),
            values: Vec::new(),
        }
    }

    /// Rows keep what was in them; new ones are zero.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows;
        self.values.resize(rows * self.panels, Sixteen::default());
    }

    pub fn row(&self, row: usize) -> &[Sixteen] {
        &self.values[row * self.panels..][..self.panels]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [Sixteen] {
        &mut self.values[row * self.panels..][..self.panels]
    }

    pub fn numbers(&self, row: usize) -> &[f32] {
        flat(self.row(row))
    }
}

/// Weights of a linear map, [inputs, outputs], rows filled up with zeros.
#[derive(Debug, Clone)]
pub struct Matrix {
    inputs: usize,
    panels: usize,
    values: Vec<Sixteen>,
    bias: Vec<Sixteen>,
}

impl Matrix {
    /// Everything times `scale`.
    pub fn new(inputs: usize, values: &[f32], bias: &[f32], scale: f32) -> Matrix {
        let outputs = bias.len();
        assert_eq!(values.len(), inputs * outputs);
        let scaled = |row: &[f32]| padded(&row.iter().map(|v| v * scale).collect::<Vec<_>>());
        Matrix {
            inputs,
            panels: panels(outputs),
            values: values.chunks(outputs).flat_map(scaled).collect(),
            bias: scaled(bias),
        }
    }
}

/// Gain and bias of a LayerNorm.
#[derive(Debug, Clone)]
pub struct Norm {
    width: usize,
    gain: Vec<Sixteen>,
    bias: Vec<Sixteen>,
    /// 1 in the lanes that count.
    mask: Vec<Sixteen>,
}

impl Norm {
    pub fn new(gain: &[f32], bias: &[f32]) -> Norm {
        assert_eq!(gain.len(), bias.len());
        Norm {
            width: gain.len(),
            gain: padded(gain),
            bias: padded(bias),
            mask: padded(&vec![1.0; gain.len()]),
        }
    }
}

/// `out = x · w + b`, cut off at zero with RELU.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn linear<L: Lanes, const RELU: bool>(x: &Rows, w: &Matrix, out: &mut Rows) {
    out.resize(x.rows);
    assert!(out.panels == w.panels && x.panels * LANES >= w.inputs);
    let mut row = 0;
    while row + L::ROWS <= x.rows {
        match L::ROWS {
            8 => linear_rows::<L, 8, RELU>(x, w, out, row),
            4 => linear_rows::<L, 4, RELU>(x, w, out, row),
            _ => {
                for r in row..row + L::ROWS {
                    linear_rows::<L, 1, RELU>(x, w, out, r)
                }
            }
        }
        row += L::ROWS;
    }
    while row + 2 <= x.rows {
        linear_rows::<L, 2, RELU>(x, w, out, row);
        row += 2;
    }
    if row < x.rows {
        linear_rows::<L, 1, RELU>(x, w, out, row);
    }
}

#[inline(always)]
unsafe fn linear_rows<L: Lanes, const R: usize, const RELU: bool>(
    x: &Rows,
    w: &Matrix,
    out: &mut Rows,
    first: usize,
) {
    let stride = x.panels * LANES;
    // In range: `first + R <= x.rows`, and `inputs` fit a row, as linear asserts.
    let from = flat(&x.values).as_ptr().add(first * stride);
    for panel in 0..w.panels {
        let mut sums = [L::load(&w.bias[panel]); R];
        let mut column = w.values.as_ptr().add(panel);
        for k in 0..w.inputs {
            let weights = L::load(column);
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = L::mul_add(L::splat(*from.add(r * stride + k)), weights, *sum);
            }
            column = column.wrapping_add(w.panels);
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let sum = if RELU {
                L::max(sum, L::splat(0.0))
            } else {
                sum
            };
            L::store(&mut out.values[(first + r) * w.panels + panel], sum);
        }
    }
}

/// `x = LayerNorm(x + y)`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn add_norm<L: Lanes>(x: &mut Rows, y: &Rows, norm: &Norm) {
    assert!(x.rows == y.rows && x.panels == y.panels && x.panels == norm.gain.len());
    let scale = 1.0 / norm.width as f32;
    let rows = x.values.chunks_exact_mut(x.panels);
    for (row, other) in rows.zip(y.values.chunks_exact(y.panels)) {
        let mut sum = L::splat(0.0);
        for (block, more) in row.iter_mut().zip(other) {
            let both = L::add(L::load(block), L::load(more));
            L::store(block, both);
            sum = L::add(sum, both);
        }
        let mean = L::splat(L::sum(sum) * scale);
        let mut squares = L::splat(0.0);
        for (block, mask) in row.iter_mut().zip(&norm.mask) {
            let off = L::mul(L::sub(L::load(block), mean), L::load(mask));
            L::store(block, off);
            squares = L::mul_add(off, off, squares);
        }
        let variance = L::sum(squares) * scale;
        let inverse = L::splat(1.0 / (variance + NORM_EPSILON).sqrt());
        for (panel, block) in row.iter_mut().enumerate() {
            let gain = L::mul(inverse, L::load(&norm.gain[panel]));
            let value = L::mul_add(L::load(block), gain, L::load(&norm.bias[panel]));
            L::store(block, value);
        }
    }
}

/// Queries (already divided by √(d/H)), keys and values, one row each.
pub struct Attention<'a> {
    pub q: &'a Rows,
    pub k: &'a Rows,
    pub v: &'a Rows,
    /// Added to the logit of each key.
    pub bias: &'a [f32],
    pub heads: usize,
    /// Width of a head.
    pub width: usize,
}

/// What attention writes down in between.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Of one head and sixteen queries: the queries, then the weight of each key.
    pub queries: Vec<Sixteen>,
    pub weights: Vec<Sixteen>,
}

impl Scratch {
    pub fn prepare(&mut self, width: usize, keys: usize) {
        self.queries.resize(width, Sixteen::default());
        self.weights.resize(keys, Sixteen::default());
    }
}

/// `out = softmax(q kᵀ + bias) v`, head by head.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn attend<L: Lanes>(of: &Attention<'_>, scratch: &mut Scratch, out: &mut Rows) {
    let n = of.q.rows;
    out.resize(n);
    scratch.prepare(of.width, n);
    assert!(of.k.rows == n && of.v.rows == n && of.bias.len() == n);
    let panels = of.q.panels;
    assert!(of.k.panels == panels && of.v.panels == panels && out.panels == panels);
    assert!(of.heads * of.width <= panels * LANES);
    for head in 0..of.heads {
        for first in (0..n).step_by(LANES) {
            let queries = first..n.min(first + LANES);
            take_queries(of, head, queries.clone(), &mut scratch.queries);
            let most = scores::<L>(of, head, 0..n, scratch);
            let mut total = L::splat(0.0);
            for weight in &mut scratch.weights {
                let value = L::exp(L::sub(L::load(weight), most));
                L::store(weight, value);
                total = L::add(total, value);
            }
            mix::<L>(of, head, queries, total, scratch, out);
        }
    }
}

/// The queries of one head, turned so that each has a lane.
#[inline(always)]
pub fn take_queries(
    of: &Attention<'_>,
    head: usize,
    queries: std::ops::Range<usize>,
    turned: &mut [Sixteen],
) {
    for (lane, query) in queries.enumerate() {
        let row = &of.q.numbers(query)[head * of.width..][..of.width];
        for (block, &value) in turned.iter_mut().zip(row) {
            block.0[lane] = value;
        }
    }
}

/// Logits of these keys into `scratch.weights`; gives back the largest.
///
/// # Safety
/// As for [`Lanes`]; `keys` lie within the rows, and the scratch holds them.
#[inline(always)]
pub unsafe fn scores<L: Lanes>(
    of: &Attention<'_>,
    head: usize,
    keys: std::ops::Range<usize>,
    scratch: &mut Scratch,
) -> L::Floats {
    /// Keys at once: each query's lanes are loaded once for all of them.
    const KEYS: usize = 4;
    let stride = of.k.panels * LANES;
    let from = flat(&of.k.values).as_ptr().add(head * of.width);
    let mut most = L::splat(f32::MIN);
    let mut key = keys.start;
    while key + KEYS <= keys.end {
        let row = from.add(key * stride);
        let mut sums: [L::Floats; KEYS] = std::array::from_fn(|i| L::splat(of.bias[key + i]));
        for (c, query) in scratch.queries.iter().enumerate() {
            let query = L::load(query);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = L::mul_add(query, L::splat(*row.add(i * stride + c)), *sum);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            L::store(&mut scratch.weights[key + i], sum);
            most = L::max(most, sum);
        }
        key += KEYS;
    }
    for key in key..keys.end {
        let row = from.add(key * stride);
        let mut sum = L::splat(of.bias[key]);
        for (c, query) in scratch.queries.iter().enumerate() {
            sum = L::mul_add(L::load(query), L::splat(*row.add(c)), sum);
        }
        L::store(&mut scratch.weights[key], sum);
        most = L::max(most, sum);
    }
    most
}

/// The values by their weights, over the total weight, into the rows of the
/// queries.
///
/// # Safety
/// As for [`Lanes`]; there are as many weights as rows of values.
#[inline(always)]
pub unsafe fn mix<L: Lanes>(
    of: &Attention<'_>,
    head: usize,
    queries: std::ops::Range<usize>,
    total: L::Floats,
    scratch: &Scratch,
    out: &mut Rows,
) {
    /// Columns of the values at once.
    const COLUMNS: usize = 8;
    let mut totals = Sixteen::default();
    L::store(&mut totals, total);
    let mut column = 0;
    while column < of.width {
        let mut mixed = [Sixteen::default(); COLUMNS];
        let many = if column + COLUMNS <= of.width {
            mix_columns::<L, COLUMNS>(of, head * of.width + column, scratch, &mut mixed);
            COLUMNS
        } else {
            mix_columns::<L, 1>(of, head * of.width + column, scratch, &mut mixed);
            1
        };
        for (lane, query) in queries.clone().enumerate() {
            let row = flat_mut(&mut out.values[query * out.panels..][..out.panels]);
            let places = &mut row[head * of.width + column..][..many];
            for (place, block) in places.iter_mut().zip(&mixed) {
                *place = block.0[lane] / totals.0[lane];
            }
        }
        column += many;
    }
}

#[inline(always)]
unsafe fn mix_columns<L: Lanes, const C: usize>(
    of: &Attention<'_>,
    column: usize,
    scratch: &Scratch,
    mixed: &mut [Sixteen],
) {
    let stride = of.v.panels * LANES;
    let mut from = flat(&of.v.values).as_ptr().add(column);
    let mut sums = [L::splat(0.0); C];
    for weight in &scratch.weights {
        let weight = L::load(weight);
        for (c, sum) in sums.iter_mut().enumerate() {
            *sum = L::mul_add(weight, L::splat(*from.add(c)), *sum);
        }
        from = from.wrapping_add(stride);
    }
    for (block, sum) in mixed.iter_mut().zip(sums) {
        L::store(block, sum);
    }
}

/// One number per row: `out = x · w + bias`.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn dot<L: Lanes>(x: &Rows, w: &[Sixteen], bias: f32, out: &mut Vec<f32>) {
    assert_eq!(x.panels, w.len());
    out.clear();
    for row in x.values.chunks_exact(x.panels) {
        let mut sum = L::splat(0.0);
        for (block, weights) in row.iter().zip(w) {
            sum = L::mul_add(L::load(block), L::load(weights), sum);
        }
        out.push(L::sum(sum) + bias);
    }
}
