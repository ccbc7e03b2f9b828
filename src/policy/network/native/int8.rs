//! Linear maps in eight bits: weights with a scale per output, rows with a
//! scale of their own, sums exact in 32 bits.

use super::kernels::Rows;
use super::lanes::{flat_mut, padded, panels, Lanes, Sixteen, LANES};

/// As far as eight bits go on both sides of zero.
const MOST: f32 = 127.0;

/// Two inputs for each of sixteen outputs. The eight bits lie in sixteen each,
/// which is what every CPU can multiply two by two.
type Pairs = [i16; 2 * LANES];

/// Weights of a linear map; see [`super::kernels::Matrix`] for the floats.
#[derive(Debug, Clone)]
pub struct Int8Matrix {
    inputs: usize,
    panels: usize,
    /// [inputs / 2, panels].
    values: Vec<Pairs>,
    scale: Vec<Sixteen>,
    bias: Vec<Sixteen>,
}

/// Rows in eight bits.
#[derive(Debug, Clone, Default)]
pub struct Int8Rows {
    /// Two inputs per number, the first one low.
    values: Vec<i32>,
    scales: Vec<f32>,
}

impl Int8Matrix {
    /// The nearest to these weights times `scale`.
    pub fn new(inputs: usize, values: &[f32], bias: &[f32], scale: f32) -> Int8Matrix {
        let outputs = bias.len();
        assert_eq!(values.len(), inputs * outputs);
        let weight = |input: usize, output: usize| values[input * outputs + output] * scale;
        let scales: Vec<f32> = (0..outputs)
            .map(|output| {
                let column = (0..inputs).map(|input| weight(input, output).abs());
                column.fold(0.0, f32::max) / MOST
            })
            .collect();
        let panels = panels(outputs);
        let mut packed = vec![[0; 2 * LANES]; inputs.div_ceil(2) * panels];
        for input in 0..inputs {
            for (output, scale) in scales.iter().enumerate() {
                let steps = if *scale > 0.0 {
                    weight(input, output) / scale
                } else {
                    0.0
                };
                let pairs = &mut packed[input / 2 * panels + output / LANES];
                pairs[output % LANES * 2 + input % 2] = steps.round() as i16;
            }
        }
        Int8Matrix {
            inputs,
            panels,
            values: packed,
            scale: padded(&scales),
            bias: padded(&bias.iter().map(|b| b * scale).collect::<Vec<_>>()),
        }
    }
}

/// `out = x · w + b`, cut off at zero with RELU.
///
/// # Safety
/// As for [`Lanes`].
#[inline(always)]
pub unsafe fn linear<L: Lanes, const RELU: bool>(
    x: &Rows,
    w: &Int8Matrix,
    narrow: &mut Int8Rows,
    out: &mut Rows,
) {
    assert!(out.panels() == w.panels && x.panels() * LANES >= w.inputs);
    let rows = x.len();
    out.resize(rows);
    quantise::<L>(x, w.inputs, narrow);
    let mut row = 0;
    while row + 4 <= rows {
        linear_rows::<L, 4, RELU>(narrow, w, out, row);
        row += 4;
    }
    for row in row..rows {
        linear_rows::<L, 1, RELU>(narrow, w, out, row);
    }
}

#[inline(always)]
unsafe fn linear_rows<L: Lanes, const R: usize, const RELU: bool>(
    x: &Int8Rows,
    w: &Int8Matrix,
    out: &mut Rows,
    first: usize,
) {
    let stride = w.inputs.div_ceil(2);
    // In range: quantise has made that many for every row.
    let from = x.values[first * stride..(first + R) * stride].as_ptr();
    for panel in 0..w.panels {
        let mut sums = [L::no_sums(); R];
        let mut column = w.values.as_ptr().add(panel);
        for pair in 0..stride {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = L::dot_pairs(*sum, *from.add(r * stride + pair), column);
            }
            column = column.wrapping_add(w.panels);
        }
        let (scale, bias) = (L::load(&w.scale[panel]), L::load(&w.bias[panel]));
        for (r, sum) in sums.into_iter().enumerate() {
            let scale = L::mul(scale, L::splat(x.scales[first + r]));
            let sum = L::mul_add(L::to_floats(sum), scale, bias);
            let sum = if RELU {
                L::max(sum, L::splat(0.0))
            } else {
                sum
            };
            L::store(&mut out.row_mut(first + r)[panel], sum);
        }
    }
}

/// Each row by its own largest number.
#[inline(always)]
unsafe fn quantise<L: Lanes>(x: &Rows, inputs: usize, to: &mut Int8Rows) {
    /// A float plus this has its nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let stride = inputs.div_ceil(2);
    to.values.resize(x.len() * stride, 0);
    to.scales.clear();
    let zero = L::splat(0.0);
    for (row, narrow) in (0..x.len()).zip(to.values.chunks_exact_mut(stride.max(1))) {
        let mut most = zero;
        for block in x.row(row) {
            let block = L::load(block);
            most = L::max(most, L::max(block, L::sub(zero, block)));
        }
        let mut largest = [Sixteen::default()];
        L::store(&mut largest[0], most);
        let most = flat_mut(&mut largest)
            .iter()
            .fold(0.0, |a: f32, &b| a.max(b));
        to.scales.push(most / MOST);
        let steps = if most > 0.0 { MOST / most } else { 0.0 };
        let nearest = |value: f32| (value * steps + ROUND).to_bits() & 0xffff;
        // Rows have an even number of places, and zeros behind their end.
        let pairs = x.numbers(row).chunks_exact(2);
        for (narrow, pair) in narrow.iter_mut().zip(pairs) {
            *narrow = (nearest(pair[0]) | nearest(pair[1]) << 16) as i32;
        }
    }
}
