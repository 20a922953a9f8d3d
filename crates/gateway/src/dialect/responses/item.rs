//! An item of a response, as it grows and as it is told.

use serde::{Serialize, Serializer};

use super::super::openai::TokenLogprob;
use crate::tell::Spelled;

#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) status: Status,
    pub(super) body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

#[derive(Debug)]
pub(super) enum Body {
    Thoughts(String),
    Message { text: String, tokens: Vec<Spelled> },
    Call { index: u32, call_id: String, name: String, arguments: String },
}

impl Item {
    /// `place` among the items of the answer that is called `answer`.
    pub(super) fn new(answer: &str, place: usize, body: Body) -> Self {
        let prefix = match body {
            Body::Thoughts(_) => "rs",
            Body::Message { .. } => "msg",
            Body::Call { .. } => "fc",
        };
        Self { id: format!("{prefix}_{answer}_{place}"), status: Status::InProgress, body }
    }

    /// A call has no content that parts could be in.
    pub(super) fn has_parts(&self) -> bool {
        !matches!(self.body, Body::Call { .. })
    }

    /// The one part of its content.
    pub(super) fn part(&self) -> Option<Part<'_>> {
        match &self.body {
            Body::Thoughts(text) => Some(Part::ReasoningText { text }),
            Body::Message { text, tokens } => Some(Part::OutputText {
                text,
                annotations: [],
                logprobs: tokens.iter().map(TokenLogprob::from).collect(),
            }),
            Body::Call { .. } => None,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    ReasoningText { text: &'a str },
    OutputText { text: &'a str, annotations: [(); 0], logprobs: Vec<TokenLogprob<'a>> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Shown<'a> {
    Reasoning { id: &'a str, summary: [(); 0], content: Vec<Part<'a>>, status: Status },
    Message { id: &'a str, status: Status, role: &'static str, content: Vec<Part<'a>> },
    FunctionCall { id: &'a str, call_id: &'a str, name: &'a str, arguments: &'a str, status: Status },
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, status, body } = self;
        let status = *status;
        // Parts are added to an item that has begun, so it begins without.
        let content = || self.part().into_iter().filter(|_| status != Status::InProgress).collect();
        let shown = match body {
            Body::Thoughts(_) => Shown::Reasoning { id, summary: [], content: content(), status },
            Body::Message { .. } => Shown::Message { id, status, role: "assistant", content: content() },
            Body::Call { call_id, name, arguments, .. } => {
                Shown::FunctionCall { id, call_id, name, arguments, status }
            }
        };
        shown.serialize(serializer)
    }
}
