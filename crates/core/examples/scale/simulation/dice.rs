//! Chance that is the same for the same seed on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

#[derive(Debug)]
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn hits(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// Log-normal with mean 1.
    pub(super) fn spread(&mut self, sigma: f64) -> f64 {
        libm::exp(sigma * self.normal() - sigma * sigma / 2.0)
    }

    /// Of the lengths above, the one that somebody who looks at a random moment finds: the long ones are found more often.
    pub(super) fn spread_as_found(&mut self, sigma: f64) -> f64 {
        libm::exp(sigma * self.normal() + sigma * sigma / 2.0)
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = (libm::sqrt(-2.0 * libm::log1p(-self.unit())), self.unit());
        radius * libm::cos(std::f64::consts::TAU * angle)
    }
}
