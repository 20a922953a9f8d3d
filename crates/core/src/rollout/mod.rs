//! One rollout to the token: what was given, what was sampled, with which weights and how likely.
//!
//! Four bytes a token and four a log-probability; everything that stays the same over many tokens (the
//! mask, the weight version, the rewards) is kept as run-lengths. A value of [`Rollout`] is valid: its parts
//! have the lengths they must have, which [`Draft`] is checked for on the way in.

mod runs;

pub use runs::Runs;

use std::ops::Range;

/// The version of a token that no policy sampled.
pub const NO_VERSION: i32 = -1;

/// The metadata's own schema as this build writes it.
pub const METADATA_VERSION: u32 = 1;

/// Where a rollout came from: attached by the worker after the environment is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// `{hostname}_{pid}`.
    pub worker_id: String,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// The trainer's step whose weights sampled it; -1 if nobody said.
    pub weight_step: i64,
    /// Of this schema, for whoever reads it years later.
    pub version: u32,
}

impl Default for Metadata {
    fn default() -> Self {
        Self { worker_id: String::new(), timestamp: 0.0, weight_step: -1, version: METADATA_VERSION }
    }
}

impl Metadata {
    /// Nobody said where the rollout came from.
    pub fn is_missing(&self) -> bool {
        self.worker_id.is_empty() && self.timestamp == 0.0 && self.weight_step == -1
    }

    /// The same, with what it does not say as `other` says it.
    pub fn completed_by(&self, other: &Self) -> Self {
        let own_id = !self.worker_id.is_empty();
        Self {
            worker_id: if own_id { self.worker_id.clone() } else { other.worker_id.clone() },
            timestamp: if self.timestamp == 0.0 { other.timestamp } else { self.timestamp },
            weight_step: if self.weight_step == -1 { other.weight_step } else { self.weight_step },
            version: self.version,
        }
    }
}

/// A rollout's parts before they are checked against each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub env_name: String,
    pub env_example_id: String,
    /// The prompt and everything after it, in order.
    pub tokens: Vec<i32>,
    /// How many of the tokens are the prompt; the rest is the response.
    pub prompt_len: usize,
    /// One for each token of the response, where the engine gave them.
    pub logprobs: Option<Vec<f32>>,
    /// Which tokens of the response were sampled; all, if left out.
    pub sampled: Option<Vec<bool>>,
    /// The weights each token of the response was sampled with; `metadata.weight_step`, if left out.
    pub versions: Option<Vec<i32>>,
    /// A reward for each token of the response; zeros, if left out.
    pub token_rewards: Option<Vec<f32>>,
    pub episode_reward: f64,
    pub metadata: Metadata,
    pub temperature: Option<f32>,
    pub top_k: Option<i32>,
    pub is_truncated: bool,
    pub correctness_reward: Option<f64>,
    /// The tokens were made from text after the fact: they may not be the ones the model sampled.
    pub retokenised: bool,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RolloutError {
    #[error("{field} has {len} values, but the response has {expected} tokens")]
    Length { field: &'static str, len: usize, expected: usize },
    #[error("the prompt is {prompt_len} tokens long, but there are only {len} tokens in all")]
    Prompt { prompt_len: usize, len: usize },
    #[error("{field} is {value}, but must be a finite number")]
    NotFinite { field: &'static str, value: f64 },
    #[error("{field}[{index}] is {value}, but must be {expected}")]
    Value { field: &'static str, index: usize, value: String, expected: &'static str },
    #[error("{len} tokens are more than a rollout can hold ({})", u32::MAX)]
    TooLong { len: usize },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    pub env_name: Box<str>,
    pub env_example_id: Box<str>,
    tokens: Box<[i32]>,
    prompt_len: u32,
    logprobs: Option<Box<[f32]>>,
    sampled: Runs<bool>,
    versions: Runs<i32>,
    token_rewards: Runs<f32>,
    pub episode_reward: f64,
    pub metadata: Metadata,
    pub temperature: Option<f32>,
    pub top_k: Option<i32>,
    pub is_truncated: bool,
    pub correctness_reward: Option<f64>,
    exact: bool,
}

/// What was given and then what was sampled; a conversation is a row of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub given: Range<usize>,
    pub sampled: Range<usize>,
}

impl Rollout {
    pub fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    pub fn prompt_len(&self) -> usize {
        self.prompt_len as usize
    }

    pub fn response_len(&self) -> usize {
        self.tokens.len() - self.prompt_len()
    }

    pub fn prompt_tokens(&self) -> &[i32] {
        self.tokens.get(..self.prompt_len()).unwrap_or_default()
    }

    pub fn response_tokens(&self) -> &[i32] {
        self.tokens.get(self.prompt_len()..).unwrap_or_default()
    }

    /// One for each token of the response, 0 where it was not sampled; `None` if the engine gave none.
    pub fn response_logprobs(&self) -> Option<&[f32]> {
        self.logprobs.as_deref()
    }

    /// Which tokens of the response the policy sampled.
    pub fn sampled(&self) -> &Runs<bool> {
        &self.sampled
    }

    /// The weights each token of the response was sampled with, [`NO_VERSION`] for those that were given.
    pub fn versions(&self) -> &Runs<i32> {
        &self.versions
    }

    /// The reward of each token of the response.
    pub fn token_rewards(&self) -> &Runs<f32> {
        &self.token_rewards
    }

    /// The tokens are the ones the policy sampled, not made again from text.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The same with other metadata.
    pub fn with_metadata(&self, metadata: Metadata) -> Result<Self, RolloutError> {
        let mut rollout = self.clone();
        rollout.set_metadata(metadata)?;
        Ok(rollout)
    }

    /// Gives it other metadata. Versions that were those of the old weight step become those of the new; what
    /// was said of single tokens stays.
    pub fn set_metadata(&mut self, metadata: Metadata) -> Result<(), RolloutError> {
        finite("timestamp", Some(metadata.timestamp))?;
        if self.has_one_version() {
            self.versions = one_version(&self.sampled, &metadata);
        }
        self.metadata = metadata;
        Ok(())
    }

    /// Takes the metadata of its batch if it has none of its own: rollouts from before each carried one.
    pub fn fill_metadata(&mut self, batch: &Metadata) -> Result<(), RolloutError> {
        if self.metadata.is_missing() { self.set_metadata(batch.clone()) } else { Ok(()) }
    }

    /// Every sampled token has the version of the weight step, so that nothing need be said of single tokens.
    pub fn has_one_version(&self) -> bool {
        self.versions == one_version(&self.sampled, &self.metadata)
    }

    /// Its turns, as places in [`Rollout::tokens`].
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        let mut given = 0..self.prompt_len();
        for (span, sampled) in self.sampled.spans() {
            let span = span.start + self.prompt_len()..span.end + self.prompt_len();
            if sampled {
                turns.push(Turn { given: given.clone(), sampled: span.clone() });
                given = span.end..span.end;
            } else {
                given.end = span.end;
            }
        }
        turns
    }

    /// Bytes it takes in memory.
    pub fn size_bytes(&self) -> usize {
        let logprobs = self.logprobs.as_ref().map_or(0, |logprobs| size_of_val::<[f32]>(logprobs));
        let runs = 8 * (self.sampled.count() + self.versions.count() + self.token_rewards.count());
        let names = self.env_name.len() + self.env_example_id.len() + self.metadata.worker_id.len();
        size_of::<Self>() + size_of_val::<[i32]>(&self.tokens) + logprobs + runs + names
    }
}

impl TryFrom<Draft> for Rollout {
    type Error = RolloutError;

    fn try_from(draft: Draft) -> Result<Self, RolloutError> {
        let len = draft.tokens.len();
        if u32::try_from(len).is_err() {
            return Err(RolloutError::TooLong { len });
        }
        let Some(response_len) = len.checked_sub(draft.prompt_len) else {
            return Err(RolloutError::Prompt { prompt_len: draft.prompt_len, len });
        };
        let fits = |field, len: Option<usize>| match len {
            Some(len) if len != response_len => {
                Err(RolloutError::Length { field, len, expected: response_len })
            }
            _ => Ok(()),
        };
        fits("response_logprobs", draft.logprobs.as_ref().map(Vec::len))?;
        fits("loss_mask", draft.sampled.as_ref().map(Vec::len))?;
        fits("versions", draft.versions.as_ref().map(Vec::len))?;
        fits("token_rewards", draft.token_rewards.as_ref().map(Vec::len))?;
        all("tokens", &draft.tokens, "a token id, from 0", |token| *token >= 0)?;
        all("response_logprobs", draft.logprobs.as_deref().unwrap_or_default(), "a number", |value| {
            !value.is_nan()
        })?;
        let rewards = draft.token_rewards.as_deref().unwrap_or_default();
        all("token_rewards", rewards, "a finite number", |value| value.is_finite())?;

        finite("episode_reward", Some(draft.episode_reward))?;
        finite("correctness_reward", draft.correctness_reward)?;
        finite("temperature", draft.temperature.map(f64::from))?;
        finite("timestamp", Some(draft.metadata.timestamp))?;

        let sampled = draft.sampled.map_or_else(|| Runs::repeat(true, response_len), Runs::from_iter);
        let versions = match draft.versions {
            Some(versions) => {
                let sampled = sampled.values();
                versions.into_iter().zip(sampled).map(|(v, on)| if on { v } else { NO_VERSION }).collect()
            }
            None => one_version(&sampled, &draft.metadata),
        };
        Ok(Self {
            env_name: draft.env_name.into(),
            env_example_id: draft.env_example_id.into(),
            tokens: exact(draft.tokens),
            prompt_len: u32::try_from(draft.prompt_len).expect("no longer than the tokens"),
            logprobs: draft.logprobs.map(exact),
            sampled,
            versions,
            token_rewards: draft
                .token_rewards
                .map_or_else(|| Runs::repeat(0.0, response_len), Runs::from_iter),
            episode_reward: draft.episode_reward,
            metadata: draft.metadata,
            temperature: draft.temperature,
            top_k: draft.top_k,
            is_truncated: draft.is_truncated,
            correctness_reward: draft.correctness_reward,
            exact: !draft.retokenised,
        })
    }
}

/// The values in memory of their size.
///
/// A reader that does not know the length in advance doubles its room until all fits, and allocators that are
/// asked to shrink a block leave it where it is: up to half of it would be held for nothing.
fn exact<T: Copy>(values: Vec<T>) -> Box<[T]> {
    if values.capacity() == values.len() { values.into_boxed_slice() } else { values.as_slice().into() }
}

/// The version of the weight step on every sampled token.
fn one_version(sampled: &Runs<bool>, metadata: &Metadata) -> Runs<i32> {
    let version = i32::try_from(metadata.weight_step).unwrap_or(NO_VERSION);
    let mut versions = Runs::default();
    for (span, on) in sampled.spans() {
        versions.push(if on { version } else { NO_VERSION }, span.len());
    }
    versions
}

fn finite(field: &'static str, value: Option<f64>) -> Result<(), RolloutError> {
    match value {
        Some(value) if !value.is_finite() => Err(RolloutError::NotFinite { field, value }),
        _ => Ok(()),
    }
}

/// Every value of the field is as it must be, or the first that is not.
fn all<T: Copy + std::fmt::Display>(
    field: &'static str,
    values: &[T],
    expected: &'static str,
    good: impl Fn(&T) -> bool,
) -> Result<(), RolloutError> {
    // Without a way out in the middle the compiler looks at many values at once.
    if values.iter().fold(true, |all, value| all & good(value)) {
        return Ok(());
    }
    match values.iter().position(|value| !good(value)) {
        None => Ok(()),
        Some(index) => {
            let value = values.get(index).map(ToString::to_string).unwrap_or_default();
            Err(RolloutError::Value { field, index, value, expected })
        }
    }
}

#[cfg(test)]
mod tests;
