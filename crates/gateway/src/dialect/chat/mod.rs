//! OpenAI's chat completions: messages in, a message out, with the tools that it calls.

mod answer;
mod ask;
mod line;
mod stream;

pub(super) use answer::write;
pub(super) use ask::read;
pub(super) use stream::Stream;
