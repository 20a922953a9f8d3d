//! The optimiser: Adam, with the gradient held to a length.

use serde::{Deserialize, Serialize};

use crate::model::Weights;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamSettings {
    pub learning_rate: f32,
    /// How much of the last gradients is kept.
    pub beta1: f32,
    /// How much of their squares.
    pub beta2: f32,
    /// A longer gradient is shortened to it.
    pub length_max: f32,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.95, length_max: 1.0 }
    }
}

const EPSILON: f32 = 1e-8;

/// What the optimiser remembers: as many numbers as there are weights, twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    pub settings: AdamSettings,
    pub steps: u64,
    pub means: Vec<f32>,
    pub squares: Vec<f32>,
}

impl Adam {
    pub fn new(settings: AdamSettings, weights: usize) -> Self {
        Self { settings, steps: 0, means: vec![0.0; weights], squares: vec![0.0; weights] }
    }

    /// Changes the weights; gives the length of the gradient before it was shortened.
    pub fn step(&mut self, weights: &mut Weights, gradients: &Weights) -> f64 {
        let AdamSettings { learning_rate, beta1, beta2, length_max } = self.settings;
        let length =
            gradients.values().iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        let scale = (f64::from(length_max) / length.max(1e-12)).min(1.0) as f32;
        self.steps += 1;
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let (mean_part, square_part) = (1.0 - beta1.powi(steps), 1.0 - beta2.powi(steps));
        let moments = self.means.iter_mut().zip(&mut self.squares);
        for ((weight, gradient), (mean, square)) in
            weights.values_mut().iter_mut().zip(gradients.values()).zip(moments)
        {
            let gradient = gradient * scale;
            *mean = beta1 * *mean + (1.0 - beta1) * gradient;
            *square = beta2 * *square + (1.0 - beta2) * gradient * gradient;
            *weight -= learning_rate * (*mean / mean_part) / ((*square / square_part).sqrt() + EPSILON);
        }
        length
    }
}
