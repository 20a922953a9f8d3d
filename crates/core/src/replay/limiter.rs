//! Keeps inserts and samples in step.
//!
//! A fast generator fills memory; a fast trainer reuses old data. The limiter holds
//! `inserts * samples_per_insert - samples` inside a band by telling either side to wait. The meaning of its
//! numbers is Reverb's; what is counted is rollouts.

use serde::{Deserialize, Serialize};

use super::ReplayError;

/// How inserts and samples are held together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limiter {
    pub samples_per_insert: f64,
    /// No samples before so many are held.
    pub min_size_to_sample: u64,
    pub min_diff: f64,
    pub max_diff: f64,
}

impl Default for Limiter {
    fn default() -> Self {
        Self::none()
    }
}

/// What the limiter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub inserted: u64,
    pub sampled: u64,
    /// Inserted and gone again.
    pub removed: u64,
}

impl Limiter {
    /// Never in anybody's way.
    pub const fn none() -> Self {
        Self { samples_per_insert: 1.0, min_size_to_sample: 0, min_diff: f64::MIN, max_diff: f64::MAX }
    }

    /// Samples wait for a size, and nothing else waits.
    pub fn min_size(min_size_to_sample: u64) -> Result<Self, ReplayError> {
        if min_size_to_sample == 0 {
            return Err(ReplayError::setting("min_size_to_sample", 0, "at least 1"));
        }
        Ok(Self { min_size_to_sample, ..Self::none() })
    }

    /// Each is sampled once on average, and at most `size` are ahead.
    pub fn queue(size: u64) -> Result<Self, ReplayError> {
        if size == 0 {
            return Err(ReplayError::setting("size", 0, "at least 1"));
        }
        Ok(Self { samples_per_insert: 1.0, min_size_to_sample: 1, min_diff: 0.0, max_diff: size as f64 })
    }

    /// Each is sampled `samples_per_insert` times on average. `error_buffer` is how far the two sides may be apart,
    /// counted in samples, from where they stand when the first sample is allowed.
    pub fn sample_to_insert_ratio(
        samples_per_insert: f64,
        min_size_to_sample: u64,
        error_buffer: f64,
    ) -> Result<Self, ReplayError> {
        if !(samples_per_insert > 0.0 && samples_per_insert.is_finite()) {
            return Err(ReplayError::setting("samples_per_insert", samples_per_insert, "a number above 0"));
        }
        if min_size_to_sample == 0 {
            return Err(ReplayError::setting("min_size_to_sample", 0, "at least 1"));
        }
        let smallest = samples_per_insert.max(1.0);
        if !(error_buffer >= smallest && error_buffer.is_finite()) {
            let expected = format!("at least {smallest}, or one side could wait for ever");
            return Err(ReplayError::setting("error_buffer", error_buffer, &expected));
        }
        let offset = samples_per_insert * min_size_to_sample as f64;
        Ok(Self {
            samples_per_insert,
            min_size_to_sample,
            min_diff: offset - error_buffer,
            max_diff: offset + error_buffer,
        })
    }

    pub fn can_insert(&self, flow: Flow, count: u64) -> bool {
        let held = flow.inserted - flow.removed;
        // Whoever waits for a size must be let reach it.
        held + count <= self.min_size_to_sample
            || (flow.inserted + count) as f64 * self.samples_per_insert - flow.sampled as f64 <= self.max_diff
    }

    /// May so many be inserted at once: now, later, or never?
    pub fn check_insert(&self, flow: Flow, count: u64) -> Result<(), ReplayError> {
        if self.can_insert(flow, count) {
            return Ok(());
        }
        let needed = count as f64 * self.samples_per_insert;
        if count > self.min_size_to_sample && needed > self.band() {
            return Err(ReplayError::BandTooNarrow { count, band: self.band() });
        }
        let (Flow { inserted, sampled, .. }, samples_per_insert) = (flow, self.samples_per_insert);
        Err(ReplayError::Paced { count, inserted, sampled, samples_per_insert })
    }

    /// So many at once could never be sampled, however much is inserted before.
    pub fn check_batch(&self, count: usize) -> Result<(), ReplayError> {
        if count as f64 > self.band() {
            return Err(ReplayError::BandTooNarrow { count: count as u64, band: self.band() });
        }
        Ok(())
    }

    fn band(&self) -> f64 {
        self.max_diff - self.min_diff
    }

    pub fn can_sample(&self, flow: Flow, count: u64) -> bool {
        flow.inserted - flow.removed >= self.min_size_to_sample
            && flow.inserted as f64 * self.samples_per_insert - (flow.sampled + count) as f64 >= self.min_diff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many inserts, then samples, then inserts one by one are allowed.
    fn runs(limiter: Limiter, cap: u64) -> [u64; 3] {
        let mut flow = Flow::default();
        let inserts = |flow: &mut Flow| {
            let before = flow.inserted;
            while flow.inserted - before < cap && limiter.can_insert(*flow, 1) {
                flow.inserted += 1;
            }
            flow.inserted - before
        };
        let first = inserts(&mut flow);
        let mut sampled = 0;
        while sampled < cap && limiter.can_sample(flow, 1) {
            flow.sampled += 1;
            sampled += 1;
        }
        [first, sampled, inserts(&mut flow)]
    }

    #[test]
    fn each_limiter_lets_as_many_through_as_reverb_does() {
        let ratio = |spi, min, buffer| Limiter::sample_to_insert_ratio(spi, min, buffer).unwrap();
        for (what, limiter, expected) in [
            ("none", Limiter::none(), [100, 100, 100]),
            ("a size", Limiter::min_size(5).unwrap(), [100, 100, 100]),
            ("a queue", Limiter::queue(3).unwrap(), [3, 3, 3]),
            // Band 10 ± 4: up to 14 = 7 · 2; then samples until 14 - s >= 6.
            ("twice each", ratio(2.0, 5, 4.0), [7, 8, 4]),
            ("half of them", ratio(0.5, 10, 1.0), [12, 2, 4]),
        ] {
            assert_eq!(runs(limiter, 100), expected, "{what}");
        }
    }

    #[test]
    fn nobody_samples_before_the_size_is_reached() {
        let limiter = Limiter::min_size(5).unwrap();
        for (inserted, removed, allowed) in [(4, 0, false), (5, 0, true), (9, 5, false)] {
            assert_eq!(limiter.can_sample(Flow { inserted, sampled: 0, removed }, 1), allowed);
        }
    }

    #[test]
    fn removals_below_the_size_let_inserts_through_again() {
        let limiter = Limiter::sample_to_insert_ratio(1.0, 4, 1.0).unwrap();
        let full = Flow { inserted: 5, sampled: 0, removed: 0 };
        assert!(!limiter.can_insert(full, 1));
        assert!(limiter.can_insert(Flow { removed: 3, ..full }, 1));
    }

    #[test]
    fn a_band_that_would_hold_both_sides_is_refused() {
        for (spi, min, buffer, field) in [
            (0.0, 1, 1.0, "samples_per_insert"),
            (f64::NAN, 1, 1.0, "samples_per_insert"),
            (1.0, 0, 1.0, "min_size_to_sample"),
            (4.0, 1, 3.9, "error_buffer"),
            (0.5, 1, 0.9, "error_buffer"),
        ] {
            let error = Limiter::sample_to_insert_ratio(spi, min, buffer).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
        assert!(Limiter::queue(0).is_err() && Limiter::min_size(0).is_err());
    }
}
