//! The workflows that need no code of the user's.
//!
//! [`opening`] reads what a prompt's data says, [`render`] turns a conversation into the model's own tokens, `ask`
//! sends it to the engine, and a `record` keeps who wrote which token. A workflow is then only the order of
//! these: [`SingleTurn`] is one question and one answer; in [`MultiTurn`] the model calls tools or tries again,
//! and [`tail`] proves how the tokens go on between two answers. A [`Recipe`] makes either of settings.

mod ask;
mod multi_turn;
pub mod opening;
mod part;
mod recipe;
mod record;
pub mod render;
mod said;
mod single_turn;
pub mod tail;
mod talk;

#[cfg(test)]
pub(crate) mod scripted;

pub use multi_turn::MultiTurn;
pub use opening::Opening;
pub use recipe::{Recipe, RecipeError, Turns, reward_of};
pub use render::local_time;
pub use single_turn::SingleTurn;
