//! OpenAI's responses: items in, items out; a conversation may go on from an earlier answer.

mod answer;
mod ask;
mod input;
mod item;
mod stream;

pub(super) use answer::write;
pub(super) use ask::read;
pub(super) use stream::Stream;
