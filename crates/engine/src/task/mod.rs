//! The built-in task `math`: a file of problems becomes rollouts on a yard's shelf, without a process beside it.
//!
//! A [`StartPayload`] says what is wanted, `input` has the problems, `plan` their order without what is there already.
//! [`MathTask`] asks the engine, waits while it is away, and gives what it made to a [`Shelf`]; [`Progress`] is what
//! can be seen of it meanwhile. Every rollout has its name before it is made, so a task that was cut goes on.

mod payload;
mod sampling;

mod shelf;

mod math;
mod progress;

pub use math::{MathTask, Summary, TaskError};
pub use payload::{PayloadError, StartPayload};
pub use progress::{Counts, Progress};
pub use shelf::{Refused, Shelf, ShelfError, Written};
