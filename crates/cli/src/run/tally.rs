//! Counts what was made, for the line on the terminal.

use futures_util::future::BoxFuture;
use rollyard_engine::executor::{Finished, Status};
use rollyard_engine::sink::{Past, Sink};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Tally {
    sums: Mutex<Sums>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) episodes: u64,
    /// Sampled since the start; not those of an earlier run.
    pub(super) tokens: u64,
    reward_sum: f64,
    rewarded: u64,
}

impl Sums {
    /// Over every sample that has one, rejected ones included: a filter must not make a policy look better.
    pub(super) fn reward_mean(&self) -> Option<f64> {
        (self.rewarded > 0).then(|| self.reward_sum / self.rewarded as f64)
    }
}

impl Tally {
    pub(super) fn begin_with(&self, past: Option<&Past>) {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        for task in past.iter().flat_map(|past| past.done()) {
            sums.reward_sum += task.reward_sum;
            sums.rewarded += u64::from(task.rewarded);
        }
    }

    pub(super) fn sums(&self) -> Sums {
        *self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Tally {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.tokens += finished.output_tokens() as u64;
        sums.episodes += finished.trajectories().count() as u64;
        if !matches!(finished.status, Status::Failed(_)) {
            for sample in finished.samples() {
                sums.reward_sum += sample.reward;
                sums.rewarded += 1;
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
