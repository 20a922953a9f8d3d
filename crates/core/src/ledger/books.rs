//! The four columns that must add up.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::pipeline::DropReason;

/// Where every rollout that was ever admitted is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    pub admitted: u64,
    /// In the yard: in open or ready groups.
    pub held: u64,
    /// With a reader.
    pub leased: u64,
    /// Acked.
    pub trained: u64,
    pub dropped: BTreeMap<DropReason, u64>,
    pub held_bytes: u64,
    pub leased_bytes: u64,
    /// Acked, and kept so that a rewind can put them back.
    pub retained: u64,
    pub retained_bytes: u64,
}

impl Books {
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    pub fn balanced(&self) -> bool {
        self.admitted == self.held + self.leased + self.trained + self.dropped_total()
    }

    /// What counts against the limits of the run.
    pub fn kept(&self) -> (u64, u64) {
        (self.held + self.leased + self.retained, self.held_bytes + self.leased_bytes + self.retained_bytes)
    }
}
