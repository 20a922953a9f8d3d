//! Anthropic's messages: blocks in, blocks out.

mod answer;
mod ask;
mod blocks;
mod failure;
mod stream;

pub(super) use answer::write;
pub(super) use ask::read;
pub(super) use failure::Failure;
pub(super) use stream::Stream;
