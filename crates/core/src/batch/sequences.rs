//! Rollouts as the tensor dict that workflows return: values sit on the token they belong to.

use super::rows::{Rows, in_row};
use super::{ATTENTION_MASK, BatchError, Layout, TensorDict};
use crate::rollout::{NO_VERSION, Rollout};

/// `input_ids, attention_mask, loss_mask, logprobs (where there are any), versions, rewards`.
pub fn sequences<'a>(
    rollouts: impl IntoIterator<Item = &'a Rollout>,
    layout: &Layout,
) -> Result<TensorDict, BatchError> {
    let rows = Rows::new(rollouts.into_iter().collect(), layout)?;
    let mut dict = TensorDict::new();
    dict.insert("input_ids".to_owned(), rows.tokens());
    dict.insert(ATTENTION_MASK.to_owned(), rows.truths(|_, _, row| row.fill(1)));
    dict.insert("loss_mask".to_owned(), rows.on_sampled(|_| 1_i32));
    if let Some(logprobs) = rows.logprobs()? {
        dict.insert("logprobs".to_owned(), logprobs);
    }
    let versions = rows.tensor(NO_VERSION, |rollout, _, row| {
        row.get_mut(..rollout.prompt_len().min(row.len())).unwrap_or_default().fill(NO_VERSION);
        for (span, version) in rollout.versions().spans() {
            if let Some(places) = in_row(rollout, span, row) {
                places.fill(version);
            }
        }
    });
    dict.insert("versions".to_owned(), versions);
    dict.insert("rewards".to_owned(), rows.column(|rollout| rollout.episode_reward as f32));
    Ok(dict)
}
