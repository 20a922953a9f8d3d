//! A session is one rollout while it is made: a tree of turns.
//!
//! [`memory`] recognises messages that are sent again, so that [`prepare`] finds the turn that a request goes on from.
//! [`continuity`] says which tokens stand between that turn's answer and the next one. What was answered becomes a
//! [`turn`] of the [`tree`]. All of it changes by [`event`]s, which a journal keeps: [`state`] is what they add up to.
//! In the end a session is [`export`]ed as samples.

pub mod continuity;
pub mod event;
pub mod export;
pub mod memory;
pub mod opening;
pub mod prepare;
pub mod state;
pub mod tree;
pub mod turn;

#[cfg(test)]
mod tests;
