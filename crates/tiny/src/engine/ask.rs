//! What is asked of the engine, and what it answers.

use rollyard_engine::generate::{EngineError, GenerationConfig, Segment};
use std::time::Duration;
use tokio::sync::mpsc;

use super::TinyEngine;

/// What becomes of a request when the engine is interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenCut {
    /// It waits with what it has and goes on.
    #[default]
    GoOn,
    /// It is answered with what it has: who asked will ask for the rest.
    Answer,
}

#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Names the request for [`TinyEngine::abort`].
    pub rid: String,
    pub prompt: Vec<i32>,
    pub sampling: GenerationConfig,
    /// Which of several answers to one prompt with one seed.
    pub nth: u64,
    /// How many of the likeliest tokens are told beside each that was sampled.
    pub tops: usize,
    /// The end of a text is a token like any other.
    pub ignore_eos: bool,
    pub when_cut: WhenCut,
}

/// A token, and how likely it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternative {
    pub token: i32,
    pub logprob: f32,
}

/// One token that was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    pub token: i32,
    pub logprob: f32,
    /// Of the weights that sampled it.
    pub version: i32,
    /// The likeliest first; empty if none were asked for.
    pub tops: Vec<Alternative>,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The end of the text, or a token that was named.
    StopToken(i32),
    StopText(String),
    /// The budget or the context is used up.
    Length,
    /// Interrupted; there may be more to come.
    Cut,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// With the tokens that a stop was made of.
    pub tokens: Vec<i32>,
    pub logprobs: Vec<f32>,
    /// One for each token where they were asked for, or else none.
    pub tops: Vec<Vec<Alternative>>,
    pub segments: Vec<Segment>,
    pub ended: Ended,
    /// From the request to the first token; to the end if there was none.
    pub ttft: Duration,
    pub latency: Duration,
}

impl Answer {
    /// Of the weights that sampled the last token, if there is any.
    pub fn version(&self) -> Option<i32> {
        self.segments.last().map(|segment| segment.version)
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AskError {
    #[error("{message}")]
    Bad { field: &'static str, message: String },
    #[error("the model failed: {0}")]
    Failed(String),
    #[error("the engine is closed")]
    Closed,
}

impl AskError {
    pub(super) fn bad(field: &'static str, message: String) -> Self {
        Self::Bad { field, message }
    }
}

impl From<AskError> for EngineError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Closed => Self::Closed,
            other => Self::BadRequest(other.to_string()),
        }
    }
}

#[derive(Debug)]
pub enum Event {
    Token(Sampled),
    /// The last event. The answer has all tokens once more.
    Done(Box<Result<Answer, AskError>>),
}

/// An answer as it comes about. Dropped, it is cancelled.
#[derive(Debug)]
pub struct Flow {
    events: mpsc::Receiver<Event>,
    /// Keeps the thread alive while somebody waits for it.
    engine: TinyEngine,
    done: bool,
}

impl Flow {
    pub(super) fn new(events: mpsc::Receiver<Event>, engine: TinyEngine) -> Self {
        Self { events, engine, done: false }
    }

    /// `None` behind the last event, or if the engine is gone.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await;
        self.done |= !matches!(event, Some(Event::Token(_)));
        event
    }

    /// The whole.
    pub async fn answer(mut self) -> Result<Answer, AskError> {
        while let Some(event) = self.next().await {
            if let Event::Done(answer) = event {
                return *answer;
            }
        }
        Err(AskError::Closed)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.events.close();
        self.engine.handle.desk.ring();
    }
}
