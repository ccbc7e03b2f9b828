//! Linear maps in bf16: weights and rows with eight bits of mantissa, products
//! exact, sums in 32-bit floats. AMX multiplies sixteen rows by sixteen outputs at
//! once; the plain form adds up in the order that AMX does, so both give the same
//! numbers to the last bit.

use super::kernels::Rows;
use super::lanes::{flat_mut, padded, panels, Sixteen, LANES};

/// Inputs per step: what a tile holds of a row.
pub const STEP: usize = 32;
/// Rows, or pairs of inputs, of a tile.
pub const TILE_ROWS: usize = 16;

/// Two inputs for each of sixteen outputs, sixteen times: a tile of weights.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Tile(pub [[u16; 2 * LANES]; TILE_ROWS]);

/// Weights of a linear map; see [`super::kernels::Matrix`] for the floats.
#[derive(Debug, Clone)]
pub struct Bf16Matrix {
    inputs: usize,
    panels: usize,
    /// [panels, steps].
    tiles: Vec<Tile>,
    bias: Vec<Sixteen>,
}

/// Rows in bf16, filled up to whole tiles with zeros.
#[derive(Debug, Clone, Default)]
pub struct Bf16Rows {
    values: Vec<u16>,
    /// What AMX leaves: [panels of a group, rows of a tile].
    pub(super) sums: Vec<Sixteen>,
}

/// To the nearest, to even where two are as near. Weights and activations are
/// finite.
pub fn narrow(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

fn widen(value: u16) -> f32 {
    f32::from_bits(u32::from(value) << 16)
}

impl Bf16Matrix {
    /// The nearest to these weights times `scale`.
    pub fn new(inputs: usize, values: &[f32], bias: &[f32], scale: f32) -> Bf16Matrix {
        let outputs = bias.len();
        assert_eq!(values.len(), inputs * outputs);
        let (panels, steps) = (panels(outputs), inputs.div_ceil(STEP));
        let mut tiles = vec![Tile([[0; 2 * LANES]; TILE_ROWS]); panels * steps];
        for input in 0..inputs {
            for output in 0..outputs {
                let tile = &mut tiles[output / LANES * steps + input / STEP];
                let within = input % STEP;
                tile.0[within / 2][output % LANES * 2 + within % 2] =
                    narrow(values[input * outputs + output] * scale);
            }
        }
        Bf16Matrix {
            inputs,
            panels,
            tiles,
            bias: padded(&bias.iter().map(|b| b * scale).collect::<Vec<_>>()),
        }
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    pub fn panels(&self) -> usize {
        self.panels
    }

    pub fn steps(&self) -> usize {
        self.inputs.div_ceil(STEP)
    }

    /// All steps of a panel.
    pub fn tiles(&self, panel: usize) -> &[Tile] {
        &self.tiles[panel * self.steps()..][..self.steps()]
    }

    /// Adds the bias to the sums of a panel, cuts off at zero with `relu`, and
    /// writes them where they belong.
    #[inline]
    pub fn finish(&self, panel: usize, sums: &Sixteen, relu: bool, to: &mut Sixteen) {
        let bias = &self.bias[panel].0;
        to.0 = std::array::from_fn(|lane| {
            let sum = sums.0[lane] + bias[lane];
            if relu && sum < 0.0 {
                0.0
            } else {
                sum
            }
        });
    }
}

impl Bf16Rows {
    /// Takes the rows of `x`, `inputs` numbers of each.
    pub fn take(&mut self, x: &Rows, inputs: usize) {
        let width = inputs.div_ceil(STEP) * STEP;
        let rows = x.len().next_multiple_of(TILE_ROWS);
        self.values.clear();
        self.values.resize(rows * width, 0);
        for (row, to) in (0..x.len()).zip(self.values.chunks_exact_mut(width)) {
            for (to, &value) in to.iter_mut().zip(&x.numbers(row)[..inputs]) {
                *to = narrow(value);
            }
        }
    }

    /// A row and everything after it.
    pub fn rows_from(&self, row: usize, steps: usize) -> &[u16] {
        &self.values[row * steps * STEP..]
    }
}

/// `out = x · w + b`, cut off at zero with `relu`, without AMX.
pub fn linear(x: &Rows, w: &Bf16Matrix, rows: &mut Bf16Rows, out: &mut Rows, relu: bool) {
    out.resize(x.len());
    rows.take(x, w.inputs);
    let steps = w.steps();
    for row in 0..x.len() {
        let numbers = &rows.rows_from(row, steps)[..steps * STEP];
        for panel in 0..w.panels {
            let mut sums = [Sixteen::default()];
            for (tile, part) in w.tiles(panel).iter().zip(numbers.chunks_exact(STEP)) {
                let (mut even, mut odd) = ([0.0; LANES], [0.0; LANES]);
                for (weights, pair) in tile.0.iter().zip(part.chunks_exact(2)) {
                    let (first, second) = (widen(pair[0]), widen(pair[1]));
                    for lane in 0..LANES {
                        even[lane] += first * widen(weights[2 * lane]);
                        odd[lane] += second * widen(weights[2 * lane + 1]);
                    }
                }
                for (lane, sum) in flat_mut(&mut sums).iter_mut().enumerate() {
                    *sum += even[lane] + odd[lane];
                }
            }
            w.finish(panel, &sums[0], relu, &mut out.row_mut(row)[panel]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_the_nearest_and_to_even() {
        assert_eq!(widen(narrow(1.0)), 1.0);
        assert_eq!(widen(narrow(-3.5)), -3.5);
        let step = 1.0 / 128.0;
        assert_eq!(widen(narrow(1.0 + 0.4 * step)), 1.0);
        assert_eq!(widen(narrow(1.0 + 0.6 * step)), 1.0 + step);
        assert_eq!(widen(narrow(1.0 + 0.5 * step)), 1.0);
        assert_eq!(widen(narrow(1.0 + 1.5 * step)), 1.0 + 2.0 * step);
    }
}
