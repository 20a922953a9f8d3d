//! Randomness that is an argument: the n-th draw of a seed is the same on every machine.
//!
//! A draw has a stream of its own, so that repeating the five-hundredth needs none of the others, and nothing
//! but two numbers has to be kept in the ledger. Logarithms and powers come from `libm`, because those of the
//! operating system differ in their last bits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

#[derive(Clone, Debug)]
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// The stream of the `draw`-th draw.
    pub fn of(seed: u64, draw: u64) -> Self {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        stream.set_stream(draw);
        Self(stream)
    }

    /// A number from 0 to below 1, to 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number of the exponential distribution with mean 1, above 0.
    pub(super) fn exponential(&mut self) -> f64 {
        // 1 - u is above 0, so its logarithm is finite.
        -libm::log1p(-self.unit())
    }

    /// A whole number from 0 to below `bound`, each as likely as the others.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        // The remainder of 2^64 is cut off, or the first numbers would come a little more often.
        let unfair = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(bound);
            if wide as u64 >= unfair {
                return (wide >> 64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_whatever_was_drawn_before() {
        let of = |seed, draw| {
            let mut chance = Chance::of(seed, draw);
            (chance.below(1000), chance.below(1000), chance.unit())
        };
        assert_eq!(of(7, 3), of(7, 3));
        assert_ne!(of(7, 3), of(7, 4));
        assert_ne!(of(7, 3), of(8, 3));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut chance = Chance::of(1, 1);
        for bound in [0, 1, 2, 3, 1000] {
            assert!((0..200).all(|_| chance.below(bound) < bound.max(1)));
        }
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.unit())));
        assert!((0..1000).all(|_| chance.exponential() >= 0.0));
    }
}
