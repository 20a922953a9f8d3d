//! What a workflow in Python returned, as a trajectory.
//!
//! Tensors come from outside: their names, shapes and numbers are checked here, once, whichever process they
//! were made in. Each row becomes a sample; the tensors themselves are kept beside, extra keys included.
//!
//! `loss_mask` says what was sampled. Without it `versions` does (-1 is no version), and without both nothing
//! is known: then the whole row counts as given, because tokens must not be trained on by mistake.

use rollyard_core::batch::{DType, PadValues, Tensor, TensorDict, concat, views};
use rollyard_core::rollout::{Draft, Metadata, NO_VERSION, Rollout, Runs};
use serde_json::{Map, Value};

use crate::episode::{Context, EpisodeError, PromptAndCompletion, Sample, Trajectory};
use crate::generate::{Message, Segment};
use crate::reward::RewardError;

/// What a workflow may return, as errors say it.
pub const EXPECTED: &str = "a dict of tensors, a dict of interactions or None";

/// A dict of tensors, or one interaction.
#[derive(Debug, Default)]
pub struct Part {
    /// One row for an interaction; none where the engine only speaks text.
    pub tensors: Option<TensorDict>,
    /// Of an interaction; tensors have theirs in `rewards`.
    pub reward: Option<f64>,
    pub messages: Vec<Message>,
    pub text: Option<PromptAndCompletion>,
    pub extra: Map<String, Value>,
}

/// `None` if there is no part: the episode is rejected.
pub fn trajectory(parts: Vec<Part>, context: &Context) -> Result<Option<Trajectory>, EpisodeError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let mut samples = Vec::new();
    let mut dicts = Vec::new();
    let mut all_have_tensors = true;
    for part in parts {
        match part.tensors {
            Some(tensors) => {
                let rows = Rows::read(&tensors)?;
                for row in 0..rows.count {
                    let reward = finite(rows.reward(row).or(part.reward).unwrap_or(0.0), row)?;
                    samples.push(Sample {
                        rollout: Some(rows.rollout(row, reward, context)?),
                        reward,
                        messages: part.messages.clone(),
                        text: part.text.clone(),
                        segments: rows.segments(row),
                        extra: part.extra.clone(),
                        ..Sample::default()
                    });
                }
                dicts.push(tensors);
            }
            None => {
                all_have_tensors = false;
                let reward = finite(part.reward.unwrap_or(0.0), samples.len())?;
                let Part { messages, text, extra, .. } = part;
                samples.push(Sample { reward, messages, text, extra, ..Sample::default() });
            }
        }
    }
    let tensors = if all_have_tensors { joined(dicts)? } else { None };
    Ok(Some(Trajectory { samples, tensors }))
}

fn joined(mut dicts: Vec<TensorDict>) -> Result<Option<TensorDict>, EpisodeError> {
    if dicts.len() <= 1 {
        return Ok(dicts.pop());
    }
    let parts: Vec<_> = dicts.iter().map(views).collect();
    let all = concat(&parts, &PadValues::default());
    Ok(Some(all.map_err(|error| wrong(format!("interactions that do not fit together ({error})")))?))
}

fn finite(value: f64, row: usize) -> Result<f64, EpisodeError> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(RewardError::NotFinite { by: format!("sample {row} of the workflow"), value }.into())
}

fn wrong(found: String) -> EpisodeError {
    EpisodeError::WrongType { found, expected: EXPECTED }
}

/// Tensors that fit together, as numbers.
struct Rows {
    count: usize,
    width: usize,
    tokens: Vec<f64>,
    attention: Vec<f64>,
    loss: Option<Vec<f64>>,
    logprobs: Option<Vec<f64>>,
    versions: Option<Vec<f64>>,
    rewards: Option<Vec<f64>>,
}

impl Rows {
    fn read(tensors: &TensorDict) -> Result<Self, EpisodeError> {
        let names = || tensors.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let needed = |key: &str| {
            tensors.get(key).ok_or_else(|| wrong(format!("a dict without {key:?} (it has: {})", names())))
        };
        let ids = needed("input_ids")?;
        let &[count, width] = ids.shape() else {
            return Err(wrong(format!(
                "\"input_ids\" of shape {:?}, which is not [rows, length]",
                ids.shape()
            )));
        };
        needed("attention_mask")?;
        let plane = |key: &str| Self::plane(tensors, key, &[count, width]);
        let rewards = match tensors.get("rewards") {
            Some(rewards) if rewards.shape().iter().product::<usize>() != count => {
                let shape = rewards.shape();
                return Err(wrong(format!(
                    "\"rewards\" of shape {shape:?}, but \"input_ids\" has {count} rows"
                )));
            }
            rewards => rewards.map(numbers),
        };
        Ok(Self {
            count,
            width,
            tokens: plane("input_ids")?.unwrap_or_default(),
            attention: plane("attention_mask")?.unwrap_or_default(),
            loss: plane("loss_mask")?,
            logprobs: plane("logprobs")?,
            versions: plane("versions")?,
            rewards,
        })
    }

    fn plane(tensors: &TensorDict, key: &str, shape: &[usize]) -> Result<Option<Vec<f64>>, EpisodeError> {
        let Some(tensor) = tensors.get(key) else { return Ok(None) };
        if tensor.shape() != shape {
            let found = tensor.shape();
            return Err(wrong(format!("{key:?} of shape {found:?}, but \"input_ids\" has {shape:?}")));
        }
        Ok(Some(numbers(tensor)))
    }

    fn reward(&self, row: usize) -> Option<f64> {
        self.rewards.as_ref()?.get(row).copied()
    }

    /// The values of a row where there is a token.
    fn seen<'a>(&'a self, plane: &'a [f64], row: usize) -> impl Iterator<Item = f64> + 'a {
        let place = row * self.width..(row + 1) * self.width;
        let attention = self.attention.get(place.clone()).unwrap_or_default();
        let values = plane.get(place).unwrap_or_default();
        values.iter().zip(attention).filter(|(_, on)| **on != 0.0).map(|(value, _)| *value)
    }

    /// Which tokens of the row were sampled.
    fn sampled(&self, row: usize) -> Vec<bool> {
        match (&self.loss, &self.versions) {
            (Some(loss), _) => self.seen(loss, row).map(|on| on != 0.0).collect(),
            (None, Some(versions)) => self.seen(versions, row).map(|version| version >= 0.0).collect(),
            (None, None) => self.seen(&self.tokens, row).map(|_| false).collect(),
        }
    }

    fn rollout(&self, row: usize, episode_reward: f64, context: &Context) -> Result<Rollout, EpisodeError> {
        let sampled = self.sampled(row);
        let prompt_len = sampled.iter().position(|on| *on).unwrap_or(sampled.len());
        let whole = |key, value: f64| {
            let fits = value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX);
            let bad = || {
                wrong(format!("{key:?} with a {value} in row {row}, which is not a whole number of 32 bits"))
            };
            fits.then_some(value as i32).ok_or_else(bad)
        };
        let tokens = self.seen(&self.tokens, row).map(|token| whole("input_ids", token));
        let versions = self.versions.as_ref().map(|versions| {
            let values = self.seen(versions, row).skip(prompt_len);
            values.map(|version| whole("versions", version)).collect::<Result<Vec<_>, _>>()
        });
        let logprobs = self.logprobs.as_ref();
        let versions = versions.transpose()?;
        let oldest = versions.as_ref().and_then(|versions| versions.first().copied());
        let draft = Draft {
            env_name: context.run.to_string(),
            env_example_id: context.task_id.to_string(),
            tokens: tokens.collect::<Result<_, _>>()?,
            prompt_len,
            logprobs: logprobs
                .map(|values| self.seen(values, row).skip(prompt_len).map(|v| v as f32).collect()),
            sampled: Some(sampled.into_iter().skip(prompt_len).collect()),
            metadata: Metadata {
                weight_step: i64::from(oldest.unwrap_or(NO_VERSION)),
                ..Metadata::default()
            },
            versions,
            episode_reward,
            ..Draft::default()
        };
        Rollout::try_from(draft).map_err(|error| wrong(format!("row {row} whose {error}")))
    }

    /// The sampled tokens by the weights they were sampled with.
    fn segments(&self, row: usize) -> Vec<Segment> {
        let sampled = self.sampled(row);
        let mut runs = Runs::default();
        match &self.versions {
            Some(versions) => {
                for (version, _) in self.seen(versions, row).zip(&sampled).filter(|(_, on)| **on) {
                    runs.push(version as i32, 1);
                }
            }
            None => runs.push(NO_VERSION, sampled.iter().filter(|on| **on).count()),
        }
        runs.spans().map(|(span, version)| Segment { tokens: span.len(), version }).collect()
    }
}

/// Every element, whatever its type. Whole numbers are exact far beyond any token's.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    fn of<const N: usize>(tensor: &Tensor, read: fn([u8; N]) -> f64) -> Vec<f64> {
        let (elements, _) = tensor.bytes().as_chunks::<N>();
        elements.iter().map(|bytes| read(*bytes)).collect()
    }
    match tensor.dtype() {
        DType::Bool | DType::U8 => of(tensor, |[byte]| f64::from(byte)),
        DType::I8 => of(tensor, |bytes| f64::from(i8::from_ne_bytes(bytes))),
        DType::I16 => of(tensor, |bytes| f64::from(i16::from_ne_bytes(bytes))),
        DType::I32 => of(tensor, |bytes| f64::from(i32::from_ne_bytes(bytes))),
        DType::I64 => of(tensor, |bytes| i64::from_ne_bytes(bytes) as f64),
        DType::F16 => of(tensor, |bytes| half::f16::from_ne_bytes(bytes).to_f64()),
        DType::BF16 => of(tensor, |bytes| half::bf16::from_ne_bytes(bytes).to_f64()),
        DType::F32 => of(tensor, |bytes| f64::from(f32::from_ne_bytes(bytes))),
        DType::F64 => of(tensor, f64::from_ne_bytes),
    }
}

#[cfg(test)]
mod tests;
