//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers; [`clients`] ask over HTTP.
//! An [`episode`] is one run of a [`workflow`] on one prompt, scored by a [`reward`]. A [`group`] is a prompt's
//! episodes side by side, and the [`executor`] begins as many groups as will still be fresh when they are read.
//! What was made goes back to the caller or to a [`sink`].

pub mod generate;

pub mod clients;
pub mod generate;

pub mod episode;
pub mod reward;
pub mod tool;
pub mod workflow;

pub mod executor;
pub mod group;

pub mod sink;
