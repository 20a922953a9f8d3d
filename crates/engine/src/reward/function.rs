//! A reward that is a Rust function.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::fmt;
use std::sync::Arc;

use super::{Judged, Reward, RewardError, SharedReward, finite};

/// The closure as a reward; `name` is what errors call it.
pub fn reward_fn<F>(name: &str, score: F) -> SharedReward
where
    F: Fn(Judged<'_>) -> f64 + Send + Sync + 'static,
{
    Arc::new(FunctionReward { name: name.to_owned(), score })
}

struct FunctionReward<F> {
    name: String,
    score: F,
}

impl<F> Reward for FunctionReward<F>
where
    F: Fn(Judged<'_>) -> f64 + Send + Sync,
{
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        ready(finite(&self.name, (self.score)(judged))).boxed()
    }
}

impl<F> fmt::Debug for FunctionReward<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionReward").field("name", &self.name).finish_non_exhaustive()
    }
}
