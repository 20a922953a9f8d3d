//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers; [`clients`] are
//! those that ask over HTTP. An [`episode`] is one
//! run of a workflow on one prompt, scored by a [`reward`].

pub mod generate;

pub mod clients;

pub mod episode;
pub mod reward;
