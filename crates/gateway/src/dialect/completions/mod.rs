//! OpenAI's older completions: a text in, a text out, no messages and no tools.

mod answer;
mod ask;
mod stream;

pub(super) use answer::write;
pub(super) use ask::read;
pub(super) use stream::Stream;
