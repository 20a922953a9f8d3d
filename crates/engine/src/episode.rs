//! One run of a workflow on one prompt.
//!
//! A [`Workflow`] is given an engine, a prompt's data and its [`Context`], and returns the samples to train
//! on, or nothing if the episode is rejected. A wrong episode is an [`EpisodeError`]: it fails by itself, is
//! tried again within its budget, and takes nobody with it.

use futures_util::future::BoxFuture;
use rollyard_core::batch::TensorDict;
use rollyard_core::rollout::Rollout;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::generate::{EngineError, Message, Segment, SharedEngine, StopReason};
use crate::reward::RewardError;

/// Which episode this is.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    pub run: Arc<str>,
    pub task_id: u64,
    /// Which of the group.
    pub sample_idx: u32,
    /// From 0; counts the times it failed before.
    pub attempt: u32,
    pub is_eval: bool,
    /// The same for the same run seed, task and sample, whenever and wherever it runs.
    pub seed: u64,
}

impl Context {
    /// Where its statistics are kept.
    pub fn stat_scope(&self) -> &'static str {
        if self.is_eval { "eval-rollout" } else { "rollout" }
    }
}

/// A prompt with all that belongs to it, as the user wrote it.
#[derive(Clone, Debug)]
pub struct Data {
    json: Box<RawValue>,
    /// Read when it is first asked for: a hundred thousand prompts that wait take no more than their text.
    fields: OnceLock<Map<String, Value>>,
}

#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("{0}, but must be a JSON object")]
    NotAnObject(String),
}

impl Data {
    pub fn parse(json: &str) -> Result<Self, DataError> {
        let json: Box<RawValue> = serde_json::from_str(json)?;
        if json.get().starts_with('{') {
            return Ok(Self { json, fields: OnceLock::new() });
        }
        let start: String = json.get().chars().take(40).collect();
        Err(DataError::NotAnObject(start))
    }

    /// The same as text only. Its fields take several times as much, and are read again where they are asked for.
    pub fn unread(&self) -> Self {
        Self { json: self.json.clone(), fields: OnceLock::new() }
    }

    /// The text it was read from.
    pub fn json(&self) -> &RawValue {
        &self.json
    }

    pub fn fields(&self) -> &Map<String, Value> {
        self.fields.get_or_init(|| serde_json::from_str(self.json.get()).unwrap_or_default())
    }

    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields().get(field)
    }

    /// Where the prompt comes from, if it says.
    pub fn env_name(&self) -> Option<String> {
        self.text_of(&["env_name", "data_source"])
    }

    /// Which of its environment's prompts it is, if it says.
    pub fn example_id(&self) -> Option<String> {
        self.text_of(&["env_example_id", "example_id", "id"])
    }

    /// The first of the fields that is there, as text; numbers are ids too.
    fn text_of(&self, fields: &[&str]) -> Option<String> {
        fields.iter().find_map(|field| match self.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    }
}

/// One sequence to train on, and what people want to see of it.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// To the token. `None` where the engine only speaks text: then the messages are all there is.
    pub rollout: Option<Rollout>,
    pub reward: f64,
    /// The whole conversation, the last answer included.
    pub messages: Vec<Message>,
    /// What was given and what was answered, where the text is known without a tokenizer.
    pub text: Option<PromptAndCompletion>,
    pub segments: Vec<Segment>,
    /// Why the last answer ended, where the workflow says.
    pub stop_reason: Option<StopReason>,
    /// Further fields for the yard and the archive.
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptAndCompletion {
    pub prompt: String,
    pub completion: String,
}

/// What an episode is worth: one sample, or several where a conversation was cut or forked.
#[derive(Clone, Debug, Default)]
pub struct Trajectory {
    pub samples: Vec<Sample>,
    /// The tensors that the workflow returned itself, one row a sample: the caller gets them as they are.
    pub tensors: Option<TensorDict>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum EpisodeError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Reward(#[from] RewardError),
    /// The prompt cannot be used, today or tomorrow.
    #[error("{0}")]
    BadData(String),
    /// Raised by the workflow itself.
    #[error("{0}")]
    Workflow(String),
    #[error("the workflow returned {found}, but must return {expected}")]
    WrongType { found: String, expected: &'static str },
    #[error("the episode did not end within {secs} s")]
    Timeout { secs: f64 },
    #[error("a worker process ended in the middle of the episode: {0}")]
    WorkerLost(String),
}

impl EpisodeError {
    /// Whether another attempt may go better.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Engine(error) => error.may_pass(),
            Self::Reward(error) => error.may_pass(),
            Self::BadData(_) | Self::WrongType { .. } => false,
            Self::Workflow(_) | Self::Timeout { .. } | Self::WorkerLost(_) => true,
        }
    }
}

/// How a trajectory is made of a prompt.
pub trait Workflow: Send + Sync + fmt::Debug {
    /// `None` rejects the episode: it leaves no sample, and that is no failure. Dropping the future cancels
    /// everything that it began.
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>>;
}

pub type SharedWorkflow = Arc<dyn Workflow>;
