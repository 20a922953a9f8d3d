//! Tells thoughts, words and calls apart in what a model writes.
//!
//! Each family of models has its own marks for them: a [`Grammar`]. A [`Listener`] hears one answer as it comes and
//! says what is certain, so that a stream never takes anything back: text outside of calls is passed on at once, but
//! for what may be the beginning of a mark, and a call is told when it is complete. However the text is cut, the
//! same is told.
//!
//! `docs/decisions/013-answer-parsers.md` says why no library does this.

mod form;
mod grammar;
mod listener;

mod marked;
mod marks;
mod told;

mod channels;

mod json;
mod schema;
mod sections;
mod tagged;

#[cfg(test)]
mod tests;

pub use grammar::{Grammar, UnknownGrammar};
pub use listener::Listener;

use crate::tell::Call;

/// All of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub reasoning: Option<String>,
    pub content: String,
    pub calls: Vec<Call>,
    /// What is wrong with each call that could not be understood; its text is in the content.
    pub malformed: Vec<String>,
}
