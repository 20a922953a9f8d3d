//! What happens to a session, as a journal keeps it.
//!
//! A message is written once: later turns refer to it by the hash of its text.

use rollyard_engine::generate::Segment;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

use super::memory::{Known, Memory, Standing};
use super::opening::Opening;
use super::turn::{Cut, Facts, Prefix, Turn, TurnNo};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    Opened(Box<Opened>),
    Turned(Box<Turned>),
    /// Of one turn, or of those that the session ends with.
    Rewarded {
        turn: Option<TurnNo>,
        reward: f64,
    },
    /// An agent that had gone away came back for the answer.
    Heard {
        turn: TurnNo,
    },
    Closed(Closed),
    /// Its rollouts are where they belong: nothing of it is needed any more.
    Delivered,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    pub key: String,
    pub reward_key: String,
    pub opening: Opening,
    /// Of its group, as it was when it was opened: those before it may be forgotten by then.
    pub round: u32,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    pub how: Closing,
    pub reason: String,
    pub at_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    Ended,
    Abandoned,
    Expired,
}

impl Closing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Abandoned => "abandoned",
            Self::Expired => "expired",
        }
    }
}

/// A [`Turn`] without what is known already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turned {
    id: u32,
    follows: Option<TurnNo>,
    cut: Option<Cut>,
    prefix: Option<Prefix>,
    given: Vec<i32>,
    sampled: Vec<i32>,
    logprobs: Vec<f32>,
    segments: Vec<Segment>,
    messages: Vec<Written>,
    answer: String,
    standing: [u64; 2],
    question: [u64; 2],
    facts: Facts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Written {
    /// As a template reads it, and the hash of the text as it was sent.
    New {
        json: String,
        raw: [u64; 2],
    },
    Known([u64; 2]),
}

impl Turned {
    /// `is_written` says which messages the journal has already.
    pub fn of(turn: &Turn, mut is_written: impl FnMut(u128) -> bool) -> Self {
        let write = |message: &Arc<Known>| match is_written(message.raw) {
            true => Written::Known(halves(message.raw)),
            false => Written::New { json: message.json.get().to_owned(), raw: halves(message.raw) },
        };
        Self {
            id: turn.id,
            follows: turn.follows,
            cut: turn.cut,
            prefix: turn.prefix,
            given: turn.given.to_vec(),
            sampled: turn.sampled.to_vec(),
            logprobs: turn.logprobs.to_vec(),
            segments: turn.segments.to_vec(),
            messages: turn.messages.iter().map(write).collect(),
            answer: turn.answer.json.get().to_owned(),
            standing: halves(turn.standing.0),
            question: halves(turn.question),
            facts: turn.facts.clone(),
        }
    }

    /// The turn that was written, or what is wrong with it.
    pub fn read(self, memory: &mut Memory) -> Result<Turn, String> {
        let mut messages = Vec::with_capacity(self.messages.len());
        for written in self.messages {
            messages.push(match written {
                Written::Known(raw) => {
                    let known = memory.get(whole(raw)).cloned();
                    known.ok_or("a message that it refers to was never written")?
                }
                Written::New { json, raw } => {
                    let message = Arc::new(Known { raw: whole(raw), ..read(json)? });
                    memory.keep(&message);
                    message
                }
            });
        }
        Ok(Turn {
            id: self.id,
            follows: self.follows,
            cut: self.cut,
            prefix: self.prefix,
            given: self.given.into(),
            sampled: self.sampled.into(),
            logprobs: self.logprobs.into(),
            segments: self.segments.into(),
            messages,
            answer: Arc::new(read(self.answer)?),
            standing: Standing(whole(self.standing)),
            question: whole(self.question),
            facts: self.facts,
        })
    }
}

fn read(json: String) -> Result<Known, String> {
    let raw = RawValue::from_string(json).map_err(|error| format!("a message is not JSON: {error}"))?;
    Ok(Known::read(&raw))
}

fn halves(wide: u128) -> [u64; 2] {
    [(wide >> 64) as u64, wide as u64]
}

fn whole([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
