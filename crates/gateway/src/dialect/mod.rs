//! The dialects that agents speak, and what they come down to.
//!
//! | dialect | path | read into | told as |
//! |---|---|---|---|
//! | [`Chat`](Dialect::Chat) | `/v1/chat/completions` | messages as they were written | `chat.completion` |
//! | [`Completions`](Dialect::Completions) | `/v1/completions` | a text or tokens | `text_completion` |
//! | [`Responses`](Dialect::Responses) | `/v1/responses` | items, turned into messages | `response` |
//! | [`Messages`](Dialect::Messages) | `/v1/messages` | blocks, turned into messages | `message` |
//!
//! Nothing here waits or knows of sockets: a body becomes an [`Ask`] or a [`Refusal`], and what is told becomes bytes.
//! A field that nobody here knows is passed over, because clients send many; one that would change the answer and
//! cannot be followed is refused by its path and value.

use std::fmt;

use crate::ask::Ask;
use crate::refusal::Refusal;
use crate::tell::{Answer, Begun, Ended, Spoken};

mod fields;
mod options;
mod said;
mod sampling;
mod tools;

mod openai;
mod wire;

mod chat;
mod completions;
mod messages;
mod responses;

mod models;
#[cfg(test)]
mod tests;

pub use models::{model, models};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Completions,
    Responses,
    Messages,
}

impl Dialect {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Completions, Self::Responses, Self::Messages];

    /// A refusal names the field and the value that it is for.
    pub fn read(self, body: &[u8]) -> Result<Ask, Refusal> {
        match self {
            Self::Chat => chat::read(body),
            Self::Completions => completions::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
        }
    }

    /// A whole answer to what was asked in the same dialect.
    pub fn write(self, answer: &Answer, ask: &Ask) -> Vec<u8> {
        match self {
            Self::Chat => chat::write(answer, ask),
            Self::Completions => completions::write(answer, ask),
            Self::Responses => responses::write(answer, ask),
            Self::Messages => messages::write(answer),
        }
    }

    /// Tells an answer as a stream.
    pub fn voice(self, begun: Begun, ask: &Ask) -> Voice {
        Voice(match self {
            Self::Chat => Box::new(chat::Stream::new(begun, ask)),
            Self::Completions => Box::new(completions::Stream::new(begun, ask)),
            Self::Responses => Box::new(responses::Stream::new(begun, ask)),
            Self::Messages => Box::new(messages::Stream::new(begun)),
        })
    }

    /// The body of an answer that is none.
    pub fn refuse(self, refusal: &Refusal) -> Vec<u8> {
        match self {
            Self::Chat | Self::Completions | Self::Responses => wire::body(&openai::Failure::from(refusal)),
            Self::Messages => wire::body(&messages::Failure::from(refusal)),
        }
    }
}

/// Tells one answer as server-sent events, which it puts behind what is in `out`.
///
/// [`begin`](Self::begin) comes first, [`end`](Self::end) once for each choice, and [`close`](Self::close) last; or
/// [`fail`](Self::fail) at any time, and then nothing more.
#[derive(Debug)]
pub struct Voice(Box<dyn Tells>);

/// What a voice does, each in its dialect.
trait Tells: fmt::Debug + Send + Sync {
    fn begin(&mut self, out: &mut Vec<u8>);
    fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>);
    fn end(&mut self, ended: &Ended, out: &mut Vec<u8>);
    fn close(&mut self, out: &mut Vec<u8>);
    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>);
}

impl Voice {
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.0.begin(out);
    }

    pub fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        self.0.speak(spoken, out);
    }

    pub fn end(&mut self, ended: &Ended, out: &mut Vec<u8>) {
        self.0.end(ended, out);
    }

    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.0.close(out);
    }

    pub fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        self.0.fail(refusal, out);
    }
}
