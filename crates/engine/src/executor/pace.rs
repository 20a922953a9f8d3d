//! How much may be begun: enough to keep the engine busy, not so much that it is stale when it is read.
//!
//! The unit is the **group**: one submitted prompt with all its episodes, as the trainer's batch counts them.
//!
//! ```text
//! capacity = min(max_concurrent - running,
//!                (max_head_offpolicyness + version + 1) * batch - (accepted + running))
//! ```
//!
//! At version `v` the trainer has taken at most `v` batches, and what is begun now is read with the batch
//! `max_head_offpolicyness` steps later at the latest, if groups are read in the order they were begun. A slow
//! group can be overtaken; so the bound is held once more where groups are taken.
//!
//! Versions count from where the executor began: a trainer that resumes at version 100 has not been given a
//! hundred batches by this executor, and may not be owed them either.

use std::num::NonZeroU32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Groups that may run at once.
    pub max_concurrent: NonZeroU32,
    /// Groups of one training step.
    pub batch: NonZeroU32,
    /// Versions that the oldest token of a group may be behind; no bound, if left out.
    pub max_head_offpolicyness: Option<u32>,
}

/// What has been done since the executor began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Versions since then.
    pub steps: u64,
    pub running: u64,
    /// Groups accepted: those that wait to be taken and those that were.
    pub accepted: u64,
}

impl Pace {
    /// How many groups may be begun now.
    pub fn capacity(&self, load: Load) -> u64 {
        let free = u64::from(self.max_concurrent.get()).saturating_sub(load.running);
        let Some(offpolicyness) = self.max_head_offpolicyness else { return free };
        let owed = (u64::from(offpolicyness) + load.steps + 1) * u64::from(self.batch.get());
        free.min(owed.saturating_sub(load.accepted + load.running))
    }

    /// How many prompts are worth having in the queue: as many as could be begun before the bound is reached.
    pub fn pending_max(&self) -> u64 {
        let offpolicyness = self.max_head_offpolicyness.unwrap_or(0);
        (u64::from(offpolicyness) + 1) * u64::from(self.batch.get())
    }

    /// A group whose oldest token has this version is too old at `version`.
    pub fn is_stale(&self, head_version: i32, version: i32) -> bool {
        let behind = i64::from(version) - i64::from(head_version);
        self.max_head_offpolicyness.is_some_and(|most| behind > i64::from(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(max_concurrent: u32, batch: u32, most: Option<u32>) -> Pace {
        Pace {
            max_concurrent: NonZeroU32::new(max_concurrent).unwrap(),
            batch: NonZeroU32::new(batch).unwrap(),
            max_head_offpolicyness: most,
        }
    }

    #[test]
    fn capacity_is_that_of_the_formula() {
        // max_concurrent, batch, offpolicyness, steps, running, accepted -> capacity
        for (max_concurrent, batch, most, steps, running, accepted, expected) in [
            (8, 4, 0, 0, 0, 0, 4),
            (8, 4, 0, 0, 4, 0, 0),
            (8, 4, 0, 0, 0, 4, 0),
            (8, 4, 0, 1, 0, 4, 4),
            (8, 4, 2, 0, 0, 0, 8),
            (16, 4, 2, 0, 0, 0, 12),
            (16, 4, 2, 0, 3, 5, 4),
            (16, 4, 2, 3, 0, 12, 12),
            (2, 4, 2, 0, 0, 0, 2),
            (2, 4, 2, 0, 2, 0, 0),
            // More has been accepted than owed: nothing, and no wrap around.
            (8, 4, 0, 0, 1, 9, 0),
            // The version was set back while much was running.
            (4, 4, 0, 0, 9, 9, 0),
        ] {
            let load = Load { steps, running, accepted };
            let found = pace(max_concurrent, batch, Some(most)).capacity(load);
            assert_eq!(found, expected, "{max_concurrent} {batch} {most} {load:?}");
        }
    }

    #[test]
    fn without_a_bound_only_the_engine_limits() {
        let load = Load { steps: 0, running: 3, accepted: 1_000_000 };
        assert_eq!(pace(8, 4, None).capacity(load), 5);
        assert!(!pace(8, 4, None).is_stale(0, 1_000));
    }

    #[test]
    fn staleness_is_counted_from_the_oldest_token() {
        for (most, head, version, stale) in
            [(0, 5, 5, false), (0, 4, 5, true), (2, 3, 5, false), (2, 2, 5, true), (1, 6, 5, false)]
        {
            assert_eq!(pace(8, 4, Some(most)).is_stale(head, version), stale, "{most} {head} {version}");
        }
    }
}
