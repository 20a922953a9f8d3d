//! Groups as they are, sample by sample: for those who want rollouts or messages, not one dict of tensors.

use rollyard_engine::executor::Finished;

use crate::rollout::Rollout;

/// Task, data, whether for evaluation, samples; JSON where it is neither numbers nor rollouts.
pub(crate) type Group = (u64, String, bool, Vec<Sample>);

/// Place in the group, reward, rollout, messages, extra fields, prompt and completion, tokens by version.
pub(crate) type Sample =
    (u32, f64, Option<Rollout>, String, String, Option<(String, String)>, Vec<(usize, i32)>);

pub(crate) fn groups_of(finished: Vec<Finished>) -> serde_json::Result<Vec<Group>> {
    finished.into_iter().map(group_of).collect()
}

fn group_of(finished: Finished) -> serde_json::Result<Group> {
    let mut samples = Vec::new();
    for (sample_idx, trajectory) in finished.trajectories() {
        for sample in &trajectory.samples {
            samples.push((
                sample_idx,
                sample.reward,
                sample.rollout.clone().map(Rollout::from),
                serde_json::to_string(&sample.messages)?,
                serde_json::to_string(&sample.extra)?,
                sample.text.clone().map(|text| (text.prompt, text.completion)),
                sample.segments.iter().map(|segment| (segment.tokens, segment.version)).collect(),
            ));
        }
    }
    Ok((finished.id.0, finished.data.json().get().to_owned(), finished.is_eval, samples))
}
