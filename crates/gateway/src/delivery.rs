//! Where the rollouts of finished sessions go, and who says how many may be begun.

use futures_util::future::BoxFuture;
use std::fmt;

use crate::refusal::Refusal;

/// Rollouts that belong together: those of one session, or of a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub run: String,
    pub instance_id: String,
    /// Items of the yard, one JSON object each. Their uids are the same every time.
    pub items: Vec<Vec<u8>>,
    /// Nobody else of this group will come, though it has fewer rollouts than sessions were announced.
    pub closes_group: bool,
}

/// How a run fares, for the pacing rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLoad {
    /// Steps that the trainer has taken.
    pub steps: u64,
    /// Rollouts that wait for the trainer or were trained on.
    pub accepted: u64,
}

pub trait Yard: Send + Sync + fmt::Debug {
    /// `None` where nobody keeps count. A run that does not exist is refused.
    fn load<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Option<RunLoad>, Refusal>>;

    /// Durable when it returns. May be called again with the same.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<(), String>>;
}
