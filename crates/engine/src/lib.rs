//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers. An [`episode`] is one
//! run of a workflow on one prompt, scored by a [`reward`]. Where the workflow is Python's, a [`host`] runs it in
//! processes of its own, and what it [`returned`] becomes a trajectory; [`stats`] are what it recorded.

pub mod generate;

pub mod episode;
pub mod returned;
pub mod reward;
pub mod stats;

pub mod host;
