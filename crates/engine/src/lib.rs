//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers; [`clients`] ask those that
//! speak HTTP. An [`episode`] is one run of a workflow on one prompt, scored by a [`reward`]. A [`group`] is a
//! prompt's episodes side by side, and the [`executor`] begins as many groups as will still be fresh when they are
//! read. Where a workflow is Python's, a [`host`] runs it in processes of its own, what it [`returned`] becomes a
//! trajectory, and [`stats`] are what it recorded.

pub mod clients;
pub mod generate;

pub mod episode;
pub mod reward;

pub mod executor;
pub mod group;

pub mod host;
pub mod returned;
pub mod stats;
