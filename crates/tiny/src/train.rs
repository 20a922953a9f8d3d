//! How the policy learns.
//!
//! A [`Lesson`] is one text with the tokens that it teaches. A [`Student`] goes through lessons with an [`Objective`]
//! for each token, and [`Adam`] changes the weights by what came of it. [`imitate`] learns from good answers; a
//! [`Trainer`] by [`Grpo`] from answers of its own that were better or worse than others of their group. A
//! [`Checkpoint`] is all of it on disk.

mod adam;
mod checkpoint;
mod grpo;
mod imitate;
mod lesson;
mod student;
mod trainer;

pub use adam::{Adam, AdamSettings};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use grpo::{Grpo, GrpoReport};
pub use imitate::imitate;
pub use lesson::Lesson;
pub use student::{Blame, Objective, Student, Taught};
pub use trainer::Trainer;

#[cfg(test)]
mod tests;
