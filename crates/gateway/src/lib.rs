//! Agents ask here as they would ask a provider, and every token of the answers is recorded.
//!
//! A request comes in one of four dialects and becomes an [`Ask`](ask::Ask); the answer is [told](tell) in the
//! dialect of the caller. In between, [`parse`] tells thoughts, words and calls apart in what the model wrote.
//! A [`session`] knows every token that was given and sampled.

pub mod ask;
pub mod tell;

pub mod refusal;

pub mod dialect;
pub mod parse;

pub mod session;

mod words;

#[cfg(test)]
mod testing;
