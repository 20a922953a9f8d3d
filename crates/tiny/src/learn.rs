//! The whole loop: a policy learns from its own answers, through a yard.
//!
//! ```text
//! problems -> executor -> workflow -> engine       samples all the time, as far ahead as the plan allows
//!                 | groups
//!                 v
//!               yard  ------ a batch on lease ----> trainer -> checkpoint -> commit
//!                                                       | new weights
//!                                                       v
//!                                                    engine
//! ```
//!
//! A [`Plan`] says what is learnt and how. [`warm_up`] imitates the task's teacher for a few seconds; then a [`Course`]
//! samples and trains side by side. Version `v` of the weights samples what step `v` trains on, at most the plan's
//! staleness later, and a checkpoint of version `v` holds exactly what was committed as step `v`: a course that was
//! killed anywhere goes on from there.

mod course;
mod exam;
mod feed;
mod plan;
mod report;
mod resume;
mod warm_up;

pub use course::{Course, LearnError, Site};
pub use plan::{Plan, PlanError};
pub use report::{Outcome, StepReport};
pub use warm_up::{WarmUp, warm_up};
