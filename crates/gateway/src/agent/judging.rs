//! A reward function judges the last answer of a session.

use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::{Context, Data, EpisodeError};
use rollyard_engine::reward::{Judged, SharedReward};

use crate::live::Live;

pub(super) async fn judge(
    reward: &SharedReward,
    live: &Live,
    tokenizer: &Tokenizer,
    data: &Data,
    context: &Context,
) -> Result<f64, EpisodeError> {
    let Some(last) = live.last_answer() else {
        return Err(EpisodeError::Workflow("the agent heard no answer to its end".to_owned()));
    };
    let prompt = text(tokenizer, &last.prompt_ids, false)?;
    let completion = text(tokenizer, &last.completion_ids, true)?;
    let judged = Judged {
        data,
        context,
        prompt: &prompt,
        completion: &completion,
        prompt_ids: &last.prompt_ids,
        completion_ids: &last.completion_ids,
        messages: &last.messages,
    };
    Ok(reward.score(judged).await?)
}

fn text(tokenizer: &Tokenizer, ids: &[i32], is_plain: bool) -> Result<String, EpisodeError> {
    let ids: Vec<u32> = ids.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
    let text = tokenizer.encoder().decode(&ids, is_plain);
    text.map_err(|error| EpisodeError::Workflow(format!("the tokens of the answer are no text: {error}")))
}
