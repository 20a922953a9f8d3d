//! Rollouts as the tensor dict that workflows return: values sit on the token they belong to.

use super::planes::Planes;
use super::rows::{Rows, in_row};
use super::{ATTENTION_MASK, BatchError, Layout, TensorDict};
use crate::rollout::{NO_VERSION, Rollout};

/// `input_ids, attention_mask, loss_mask, logprobs (where there are any), versions, rewards`.
pub fn sequences<'a>(
    rollouts: impl IntoIterator<Item = &'a Rollout>,
    layout: &Layout,
) -> Result<TensorDict, BatchError> {
    let rows = Rows::new(rollouts.into_iter().collect(), layout)?;
    let mut planes = Planes::new(&rows);
    planes.add_tokens("input_ids");
    planes.add_attention_mask(ATTENTION_MASK);
    planes.add_in_loss("loss_mask", None, |_| 1_i32);
    if rows.has_logprobs()? {
        planes.add_logprobs("logprobs");
    }
    planes.add("versions", NO_VERSION, |rollout, _, row| {
        row.get_mut(..rollout.prompt_len().min(row.len())).unwrap_or_default().fill(NO_VERSION);
        for (span, version) in rollout.versions().spans() {
            if let Some(places) = in_row(rollout, span, row) {
                places.fill(version);
            }
        }
    });
    let mut dict = planes.fill();
    dict.insert("rewards".to_owned(), rows.column(|rollout| rollout.episode_reward as f32));
    Ok(dict)
}
