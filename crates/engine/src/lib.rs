//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers. An [`episode`] is one
//! run of a workflow on one prompt, scored by a [`reward`]; [`workflow`] has the ones that need no code of the
//! user's, and [`tool`] what a model may call meanwhile. Rewards and tools that are programs are run by [`command`].

pub mod generate;

pub mod episode;
pub mod reward;
pub mod tool;
pub mod workflow;

pub mod command;
