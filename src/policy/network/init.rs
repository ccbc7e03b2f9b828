//! Weights to start from.

use super::{Shape, Tensor, Weights};

impl Weights {
    /// Uniform weights of variance 1/inputs, gains one, biases zero; the same
    /// for the same seed on every machine.
    pub fn seeded(shape: Shape, seed: u64) -> Weights {
        use Tensor::*;
        let mut weights = Weights::zeros(shape);
        let mut state = seed;
        for tensor in Tensor::all(&shape) {
            let (rows, columns) = tensor.dims(&shape);
            let variance = match tensor {
                Norm1(_) | Norm2(_) => {
                    weights.get_mut(tensor).fill(1.0);
                    continue;
                }
                // Four of them make a row of variance one.
                Idle => 1.0,
                Slack | Work | Class | Doubt => 0.25,
                Query(_) | Key(_) | Value(_) | Out(_) | Up(_) | Down(_) | Head => 1.0 / rows as f32,
                _ => continue,
            };
            let reach = (3.0 * variance).sqrt();
            debug_assert_eq!(weights.get(tensor).len(), rows * columns);
            for weight in weights.get_mut(tensor) {
                // The upper 24 bits: all that a float between 1 and 2 can hold.
                let unit = (splitmix(&mut state) >> 40) as f32 / (1u32 << 24) as f32;
                *weight = reach * (2.0 * unit - 1.0);
            }
        }
        weights
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
