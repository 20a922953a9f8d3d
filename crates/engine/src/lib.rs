//! How rollouts are made: engines are called, workflows run on them, an executor keeps the pace.
//!
//! Read in this order. [`generate`] says what an engine is asked and what it answers; [`clients`] ask over HTTP.
//! An [`episode`] is one run of a workflow on one prompt, scored by a [`reward`]; [`workflow`] has the ones that need
//! no code of the user's, and [`tool`] what a model may call meanwhile. Rewards and tools that are programs are run
//! by [`command`]. Where they are Python's, a [`host`] runs them in processes of its own, what a workflow [`returned`]
//! becomes a trajectory, and [`stats`] are what it recorded. A [`group`] is a prompt's episodes side by side, and the
//! [`executor`] begins as many groups as will still be fresh when they are read. What was made goes back to the
//! caller or to a [`sink`]; a [`yard`] is such a place, and what a trainer draws from. A [`task`] is all of it in one: a file in, rollouts on a shelf. A [`generator`] is a
//! file of the user's that does the same.

pub mod generate;

pub mod clients;

pub mod episode;
pub mod reward;
pub mod tool;
pub mod workflow;

pub mod command;
pub mod host;
pub mod http;
pub mod lines;
pub mod returned;
pub mod stats;

pub mod executor;
pub mod group;

pub mod sink;
pub mod yard;

pub mod task;

pub mod generator;
