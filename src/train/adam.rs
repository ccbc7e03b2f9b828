//! Adam with clipped gradients (Kingma and Ba 2015).

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
}

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

impl Adam {
    pub fn new(weights: usize) -> Adam {
        Adam {
            mean: vec![0.0; weights],
            square: vec![0.0; weights],
            steps: 0,
        }
    }

    /// Is this the state of so many weights?
    pub fn fits(&self, weights: usize) -> bool {
        self.mean.len() == weights && self.square.len() == weights
    }

    /// One step against `grad`, whose norm is held to `clip` first. The norm it had.
    pub fn step(&mut self, weights: &mut [f32], grad: &mut [f32], rate: f32, clip: f32) -> f32 {
        let norm = grad
            .iter()
            .map(|&g| f64::from(g) * f64::from(g))
            .sum::<f64>()
            .sqrt() as f32;
        let shrink = if norm > clip { clip / norm } else { 1.0 };
        self.steps = self.steps.saturating_add(1);
        let correct1 = 1.0 - BETA1.powi(self.steps);
        let correct2 = 1.0 - BETA2.powi(self.steps);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((weight, &mut g), (mean, square)) in weights.iter_mut().zip(grad).zip(moments) {
            let g = g * shrink;
            *mean += (1.0 - BETA1) * (g - *mean);
            *square += (1.0 - BETA2) * (g * g - *square);
            *weight -= rate * (*mean / correct1) / ((*square / correct2).sqrt() + EPSILON);
        }
        norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adam_finds_the_bottom_of_a_narrow_valley() {
        let mut x = [3.0f32, -2.0];
        let mut adam = Adam::new(2);
        for _ in 0..3000 {
            let mut grad = [2.0 * (x[0] - 1.0), 200.0 * (x[1] - 0.5)];
            adam.step(&mut x, &mut grad, 0.01, 1e9);
        }
        assert!(
            (x[0] - 1.0).abs() < 1e-2 && (x[1] - 0.5).abs() < 1e-2,
            "{x:?}"
        );
    }

    #[test]
    fn the_first_step_is_the_rate_whatever_the_gradient() {
        let mut x = [0.0f32];
        let norm = Adam::new(1).step(&mut x, &mut [400.0], 0.1, 1.0);
        assert_eq!(norm, 400.0);
        assert!((x[0] + 0.1).abs() < 1e-6);
    }
}
