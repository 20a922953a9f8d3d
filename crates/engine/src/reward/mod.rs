//! What an answer is worth.
//!
//! A [`Reward`] is the verifier of [`maths`], a comparison with the truth ([`ExactReward`]), a Rust function
//! ([`reward_fn`]), a program ([`CommandReward`]) or a server ([`HttpReward`]). [`RewardSpec`] reads which one is
//! meant from a text.

mod command;
mod exact;
mod function;
mod http;
pub mod maths;
mod reply;
mod spec;
mod truth;

pub use command::CommandReward;
pub use exact::{ExactReward, NoReward};
pub use function::reward_fn;
pub use http::{HttpReward, HttpRewardConfig};
pub use maths::MathsReward;
pub use spec::{RewardSpec, RewardSpecError, named};
pub use truth::TRUTH_FIELDS;

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

use crate::episode::{Context, Data};
use crate::generate::Message;

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub data: &'a Data,
    pub context: &'a Context,
    /// The text that was given and the text that was answered (the last answer, in a conversation).
    pub prompt: &'a str,
    pub completion: &'a str,
    pub prompt_ids: &'a [i32],
    pub completion_ids: &'a [i32],
    /// The whole conversation.
    pub messages: &'a [Message],
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RewardError {
    #[error("the reward of {by} is {value}, but must be a finite number")]
    NotFinite { by: String, value: f64 },
    #[error("{by} returned {found}, but must return a number")]
    NotANumber { by: String, found: String },
    /// The data lacks what the reward needs.
    #[error("{by}: {message}")]
    BadData { by: String, message: String },
    /// It broke, and may not the next time.
    #[error("{by} failed: {message}")]
    Failed { by: String, message: String },
    #[error("{by} did not answer within {secs} s")]
    Timeout { by: String, secs: f64 },
}

impl RewardError {
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Timeout { .. })
    }
}

pub trait Reward: Send + Sync + fmt::Debug {
    /// A finite number, or why there is none.
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>>;
}

pub type SharedReward = Arc<dyn Reward>;

/// The reward if it is one: nothing that is not a finite number gets any further.
pub fn finite(by: &str, value: f64) -> Result<f64, RewardError> {
    if value.is_finite() { Ok(value) } else { Err(RewardError::NotFinite { by: by.to_owned(), value }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::workflow::opening::message;

    /// What a reward says of one answer.
    pub(crate) fn score(reward: &dyn Reward, data: &Data, completion: &str) -> Result<f64, RewardError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let run = "r".into();
        let context = Context { run, task_id: 7, sample_idx: 1, attempt: 0, is_eval: false, seed: 99 };
        let messages = [message("user", "?"), message("assistant", completion)];
        runtime.block_on(reward.score(Judged {
            data,
            context: &context,
            prompt: "?",
            completion,
            prompt_ids: &[],
            completion_ids: &[],
            messages: &messages,
        }))
    }
}
