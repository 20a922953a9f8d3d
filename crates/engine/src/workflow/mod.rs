//! The workflows that need no code of the user's.
//!
//! [`opening`] reads what a prompt's data says, `render` turns a conversation into the model's own tokens, `ask`
//! sends it to the engine, and a `record` keeps who wrote which token. A workflow is then only the order of
//! these: [`SingleTurn`] is one question and one answer.

mod ask;
pub mod opening;
mod record;
mod render;
mod single_turn;

#[cfg(test)]
pub(crate) mod scripted;

pub use opening::Opening;
pub use single_turn::SingleTurn;
