//! Rewards that need no thought: the very text of the truth, and none at all.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::truth::truth;
use super::{Judged, Reward, RewardError};

/// One if the answer is the truth, to the letter, but for space around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExactReward;

impl Reward for ExactReward {
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        let is_same = truth("exact", judged.data).map(|truth| truth.trim() == judged.completion.trim());
        ready(is_same.map(|is_same| if is_same { 1.0 } else { 0.0 })).boxed()
    }
}

/// Nothing for anybody: for collecting answers that are judged later.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReward;

impl Reward for NoReward {
    fn score<'a>(&'a self, _: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        ready(Ok(0.0)).boxed()
    }
}
