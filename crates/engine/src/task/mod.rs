//! The built-in task `math`: a file of problems becomes rollouts on a yard's shelf, without a process beside it.
//!
//! A [`StartPayload`] says what is wanted, `input` has the problems, `plan` their order without what is there already.
//! A [`MathTask`] has rollouts made by `maker`, which sits an `outage` of the engine out, and a `writer` brings them
//! to a [`Shelf`]; [`Progress`] is what can be seen of it meanwhile. Every rollout has its name before it is made, so
//! a task that was cut goes on where it was.

mod payload;
mod sampling;

mod input;
mod plan;

mod maker;
mod outage;

mod shelf;
mod writer;

mod math;
mod progress;
mod window;

pub use input::InputError;
pub use math::{MathTask, Summary, TaskError};
pub use payload::{PayloadError, StartPayload};
pub use progress::{Counts, Progress};
pub use shelf::{KNOWN_MAX, Refused, Shelf, ShelfError, Written};
