//! One answer of the model within a session, to the token.

use rollyard_engine::generate::Segment;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::memory::{Known, Standing};
use crate::tell::Stop;

/// Turns are numbered in the order in which they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnNo(pub u32);

/// The prompt begins with the first `len` tokens of another turn's prompt and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    pub turn: TurnNo,
    pub len: u32,
}

#[derive(Clone, Debug)]
pub struct Turn {
    /// Given when it began, so that the agent can be told before it ended.
    pub id: u32,
    /// The turn whose answer the conversation goes on from; `None` where it begins anew.
    pub follows: Option<TurnNo>,
    /// Why it does not go on from the tokens of the turn that it follows.
    pub cut: Option<Cut>,
    pub prefix: Option<Prefix>,
    /// The rest of the prompt.
    pub given: Box<[i32]>,
    pub sampled: Box<[i32]>,
    /// One for each sampled token; empty where the engine gave none.
    pub logprobs: Box<[f32]>,
    pub segments: Box<[Segment]>,
    /// What was said since the answer that it follows; all of the conversation, where the prompt was rendered anew.
    pub messages: Vec<Arc<Known>>,
    /// What the model said, as a message with thoughts and calls.
    pub answer: Arc<Known>,
    /// Everything up to and with the answer.
    pub standing: Standing,
    /// What was asked: the same again is the same question.
    pub question: u128,
    pub facts: Facts,
}

/// What people want to know of a turn, and what is asked of it later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Why it ended.
    pub stop: Ending,
    /// Milliseconds since 1970.
    pub began_ms: u64,
    pub took_ms: f64,
    /// Until the first token.
    pub first_ms: f64,
    pub temperature: f32,
    pub top_k: Option<u32>,
    /// Calls that could not be read: their text is in the answer.
    pub malformed: Vec<String>,
    /// A call was demanded, and there is none.
    pub lacks_call: bool,
    /// The prompt has thoughts in it that the template would have dropped.
    pub keeps_thoughts: bool,
    /// Nobody took the answer: the agent had gone away.
    pub is_unheard: bool,
    pub reasoning_tokens: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    #[default]
    Stop,
    Length,
    ToolCalls,
    /// Nobody waited for it any more.
    Abort,
}

impl From<Ending> for Stop {
    /// Dialects have no word for an answer that was stopped: it is shorter than it would have been.
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Stop => Self::Stop,
            Ending::ToolCalls => Self::ToolCalls,
            Ending::Length | Ending::Abort => Self::Length,
        }
    }
}

/// Why a prompt is not the tokens before and a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The agent changed what was said before, or began another conversation.
    Rewritten,
    /// The template writes what was said before differently now, for example without its thoughts.
    Template,
    /// The text of a plain completion has other tokens than were sampled.
    Retokenised,
}

impl Turn {
    pub fn prompt_len(&self) -> usize {
        self.prefix.map_or(0, |prefix| prefix.len as usize) + self.given.len()
    }

    /// Of its prompt and its answer.
    pub fn len(&self) -> usize {
        self.prompt_len() + self.sampled.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its tokens are those of `before`, answer included, and then more.
    pub fn goes_on_from(&self, before: TurnNo, len: usize) -> bool {
        self.cut.is_none()
            && self.prefix.is_some_and(|prefix| prefix.turn == before && prefix.len as usize == len)
    }
}
