//! One sequence of a conversation, which becomes one sample.

use serde_json::{Map, Value};

use super::opening::content;
use super::record::Record;
use super::render::Renderer;
use crate::episode::{Context, Data, EpisodeError, PromptAndCompletion, Sample};
use crate::generate::{GenerationConfig, Message};

#[derive(Debug, Default)]
pub(super) struct Part {
    /// `None` where the engine only speaks text.
    pub(super) record: Option<Record>,
    /// The text that it began with.
    pub(super) prompt: String,
    /// Where the last answer begins.
    pub(super) answer_at: usize,
    pub(super) is_truncated: bool,
    /// The conversation when it ended.
    pub(super) messages: Vec<Message>,
    /// Why the conversation could not go on in it.
    pub(super) cut: Option<&'static str>,
}

/// What the parts of an episode share.
pub(super) struct Whole<'a> {
    pub(super) reward: f64,
    pub(super) gconfig: &'a GenerationConfig,
    pub(super) data: &'a Data,
    pub(super) context: &'a Context,
    pub(super) extra: Map<String, Value>,
}

impl Part {
    pub(super) fn tokens(&self) -> &[i32] {
        self.record.as_ref().map(Record::tokens).unwrap_or_default()
    }

    /// The tokens before the last answer, and its own.
    pub(super) fn last_answer(&self) -> (&[i32], &[i32]) {
        self.tokens().split_at_checked(self.answer_at).unwrap_or_default()
    }

    pub(super) fn truncate(&mut self) {
        self.is_truncated = true;
        if let Some(record) = &mut self.record {
            record.truncate();
        }
    }

    pub(super) fn finish(
        self,
        renderer: Option<&Renderer>,
        whole: &Whole<'_>,
    ) -> Result<Sample, EpisodeError> {
        let completion = match (renderer, &self.record) {
            (Some(renderer), Some(record)) => renderer.decode(record.response_tokens())?,
            _ => self.messages.last().map(|said| content(said)).unwrap_or_default(),
        };
        let mut extra = whole.extra.clone();
        if let Some(reason) = self.cut {
            extra.insert("cut".to_owned(), reason.into());
        }
        let segments = self.record.as_ref().map(|record| record.segments().to_vec()).unwrap_or_default();
        let finish = |record: Record| record.finish(whole.reward, whole.gconfig, whole.data, whole.context);
        Ok(Sample {
            rollout: self.record.map(finish).transpose()?,
            reward: whole.reward,
            messages: self.messages,
            text: Some(PromptAndCompletion { prompt: self.prompt, completion }),
            segments,
            extra,
            ..Sample::default()
        })
    }
}
