//! What a task is started with.
//!
//! Payloads come out of argument parsers and configuration files, so a number may be a text. A field that cannot
//! be meant is named with its value before anything is begun.

use serde_json::{Map, Value};
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::sampling;
use crate::generate::GenerationConfig;

/// What the task needs of the start payload. The knobs of the run are the run's affair.
#[derive(Clone, Debug, PartialEq)]
pub struct StartPayload {
    pub task_type: String,
    pub input_file: PathBuf,
    pub num_epoch: NonZeroU32,
    pub num_repeat_per_sample: NonZeroU32,
    /// Of the generators that this task stands in for; here it only raises the number of requests at once.
    pub num_process: u32,
    /// Rollouts under way at once.
    pub max_concurrent: Option<NonZeroU32>,
    /// With or without `/v1`.
    pub remote_engine_url: String,
    /// As they were given: every item carries them.
    pub sampling_params: Map<String, Value>,
    /// As they are understood.
    pub gconfig: GenerationConfig,
    /// A folder with tokenizer.json makes the tokens exact.
    pub tokenizer_path: Option<PathBuf>,
    /// Of the order, and of what is sampled.
    pub seed: u64,
    /// Each mention skips the instance in one epoch, the earliest first.
    pub skip_instance_ids: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("`{field}` is missing; it is {expected}")]
    Missing { field: &'static str, expected: &'static str },
    #[error("`{field}` is {value}, but must be {expected}")]
    Bad { field: String, value: String, expected: &'static str },
    #[error("`{field}` is {value}, but this task knows no such parameter; it knows {known}")]
    UnknownSampling { field: String, value: String, known: &'static str },
}

impl PayloadError {
    pub(super) fn engine_url(url: &str) -> Self {
        bad("remote_engine_url", &url.into(), ENGINE_URL)
    }

    /// The field that is wrong, with dots for what is inside another.
    pub fn field(&self) -> &str {
        match self {
            Self::Missing { field, .. } => field,
            Self::Bad { field, .. } | Self::UnknownSampling { field, .. } => field,
        }
    }
}

const ENGINE_URL: &str = "the address of an engine, such as http://127.0.0.1:30000/v1";
const FILE: &str = "the path of a JSONL file";
const IDS: &str = "a list of texts or whole numbers";

impl StartPayload {
    pub fn parse(fields: &Map<String, Value>) -> Result<Self, PayloadError> {
        let of = Fields(fields);
        let max_tokens = of.optional("max_tokens", count)?;
        let sampling_params = of.optional("sampling_params", object)?.unwrap_or_default();
        Ok(Self {
            task_type: of.text("task_type", "the name of a task, such as math")?,
            input_file: of.text("input_file", FILE)?.into(),
            num_epoch: of.optional("num_epoch", count)?.unwrap_or(NonZeroU32::MIN),
            num_repeat_per_sample: of.optional("num_repeat_per_sample", count)?.unwrap_or(NonZeroU32::MIN),
            num_process: of.optional("num_process", number)?.unwrap_or(0),
            max_concurrent: of.optional("max_concurrent", count)?,
            remote_engine_url: of.text("remote_engine_url", ENGINE_URL)?,
            gconfig: sampling::read(&sampling_params, max_tokens.map(NonZeroU32::get))?,
            sampling_params,
            tokenizer_path: of.optional_text("tokenizer_path", "a path")?.map(PathBuf::from),
            seed: of.optional("seed", number)?.unwrap_or(0),
            skip_instance_ids: of.optional("skip_instance_ids", ids)?.unwrap_or_default(),
        })
    }

    /// Whether a second start is the first one again: a trainer that comes back skips more, and wants the same.
    pub fn same_work(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.skip_instance_ids.clone_from(&self.skip_instance_ids);
        *self == other
    }
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    /// What is null was not said.
    fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn optional<T>(
        &self,
        field: &str,
        read: impl FnOnce(&str, &Value) -> Result<T, PayloadError>,
    ) -> Result<Option<T>, PayloadError> {
        self.get(field).map(|value| read(field, value)).transpose()
    }

    fn text(&self, field: &'static str, expected: &'static str) -> Result<String, PayloadError> {
        self.optional_text(field, expected)?.ok_or(PayloadError::Missing { field, expected })
    }

    fn optional_text(&self, field: &str, expected: &'static str) -> Result<Option<String>, PayloadError> {
        let text = |field: &str, value: &Value| {
            let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| bad(field, value, expected))
        };
        self.optional(field, text)
    }
}

fn bad(field: &str, value: &Value, expected: &'static str) -> PayloadError {
    PayloadError::Bad { field: field.to_owned(), value: shown(value), expected }
}

fn object(field: &str, value: &Value) -> Result<Map<String, Value>, PayloadError> {
    value.as_object().cloned().ok_or_else(|| bad(field, value, "an object"))
}

fn ids(field: &str, value: &Value) -> Result<Vec<String>, PayloadError> {
    let ids = value.as_array().ok_or_else(|| bad(field, value, IDS))?;
    let id = |(index, value): (usize, &Value)| {
        let wrong = || bad(&format!("{field}[{index}]"), value, "a text or a whole number");
        instance_id(value).ok_or_else(wrong)
    };
    ids.iter().enumerate().map(id).collect()
}

/// 1 and "1" are the same.
pub(super) fn instance_id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) if !id.is_f64() => Some(id.to_string()),
        _ => None,
    }
}

/// A whole number from 0.
pub(super) fn number<T: TryFrom<u64>>(field: &str, value: &Value) -> Result<T, PayloadError> {
    whole(value)
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| bad(field, value, "a whole number from 0"))
}

/// A whole number from 1.
pub(super) fn count(field: &str, value: &Value) -> Result<NonZeroU32, PayloadError> {
    let number = whole(value).and_then(|number| u32::try_from(number).ok()).and_then(NonZeroU32::new);
    number.ok_or_else(|| bad(field, value, "a whole number from 1"))
}

pub(super) fn decimal(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_f64(),
    };
    number.filter(|number| number.is_finite())
}

/// Written as 8, 8.0 or "8".
fn whole(value: &Value) -> Option<u64> {
    let exact = match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_u64(),
    };
    // Above this a float is no longer one number.
    let rounded = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
    exact.or_else(|| decimal(value).filter(rounded).map(|number| number as u64))
}

/// Its beginning: a value can be a whole data set that landed in the wrong field.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
