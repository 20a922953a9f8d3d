//! Rollouts with their advantages as a training batch.
//!
//! A row is the prompt and the response, trimmed to the layout's `max_tokens`. The mask is 1 on sampled
//! tokens, and the weight there is the advantage. Tokens that were sampled with weights too old may be left out
//! of the loss; they keep their place. A row that would train nothing is an error that names it: it would lower
//! the loss of a batch without anyone seeing why.

use super::planes::Planes;
use super::rows::{Rows, in_loss};
use super::{ATTENTION_MASK, BatchError, DType, Layout, TensorDict};
use crate::rollout::Rollout;

/// A rollout and how much better it was than expected.
#[derive(Clone, Copy, Debug)]
pub struct Weighted<'a> {
    pub rollout: &'a Rollout,
    pub advantage: f32,
}

/// The sampling temperature of rollouts that do not say it.
const TEMPERATURE: f32 = 1.0;

/// The `top_k` of rollouts that were sampled without one.
const NO_TOP_K: i32 = -1;

/// `input_ids, attention_mask, position_ids, loss_masks, loss_weights, policy_logprobs (where there are any),
/// temperature, top_k, truncated`.
///
/// Tokens sampled with weights older than `oldest_version` are not in the loss.
pub fn training(
    weighted: &[Weighted<'_>],
    layout: &Layout,
    oldest_version: Option<i32>,
) -> Result<TensorDict, BatchError> {
    let rows = Rows::new(weighted.iter().map(|row| row.rollout).collect(), layout)?;
    let advantages: Vec<f32> = weighted.iter().map(|row| row.advantage).collect();
    for (row, weighted) in weighted.iter().enumerate() {
        check(row, weighted, rows.kept(weighted.rollout), oldest_version)?;
    }
    let mut planes = Planes::new(&rows);
    planes.add_tokens("input_ids");
    planes.add_attention_mask(ATTENTION_MASK);
    planes.add("position_ids", 0_i32, |_, _, row| {
        for (place, position) in row.iter_mut().zip(0..) {
            *place = position;
        }
    });
    planes.add_in_loss("loss_masks", oldest_version, |_| 1.0_f32);
    let advantage = |row: usize| advantages.get(row).copied().unwrap_or_default();
    planes.add_in_loss("loss_weights", oldest_version, advantage);
    if rows.has_logprobs()? {
        planes.add_logprobs("policy_logprobs");
    }
    let mut dict = planes.fill();
    dict.insert("temperature".to_owned(), rows.column(|rollout| rollout.temperature.unwrap_or(TEMPERATURE)));
    dict.insert("top_k".to_owned(), rows.column(|rollout| rollout.top_k.unwrap_or(NO_TOP_K)));
    let truncated = rows.column(|rollout| u8::from(rollout.is_truncated));
    dict.insert("truncated".to_owned(), truncated.read_as(DType::Bool));
    Ok(dict)
}

fn check(
    row: usize,
    weighted: &Weighted<'_>,
    kept: usize,
    oldest_version: Option<i32>,
) -> Result<(), BatchError> {
    let rollout = weighted.rollout;
    let id = || rollout.env_example_id.to_string();
    if !weighted.advantage.is_finite() {
        return Err(BatchError::Advantage { row, id: id(), value: weighted.advantage });
    }
    let len = rollout.response_len();
    let first = |oldest| in_loss(rollout, oldest).next().map(|span| rollout.prompt_len() + span.start);
    let reason = match (first(oldest_version), oldest_version) {
        (Some(first), _) if first < kept => return Ok(()),
        (Some(first), _) => {
            format!("it was trimmed to {kept} tokens, and the first to train on is at {first}")
        }
        (None, _) if len == 0 => "the response is empty".to_owned(),
        (None, Some(oldest)) if first(None).is_some() => {
            format!("all that was sampled of its {len} response tokens is older than version {oldest}")
        }
        (None, _) => format!("none of its {len} response tokens were sampled"),
    };
    Err(BatchError::NothingTrained { row, id: id(), reason })
}
