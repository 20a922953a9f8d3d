//! How Python makes rollouts: engines, episodes, and the executor that paces them.
//!
//! Read in this order: a [`request`] goes to an [`engine`] and a [`response`] comes back, to an asyncio loop through
//! its [`mailbox`]; an [`episode`] is one run of a workflow of Python's on such a loop, or a [`host`] has it run in
//! another process, or a [`recipe`] makes one that runs in Rust, or an
//! [`agent`] asks a gateway of ours; the [`executor`] runs many, a [`group`] is what came of one prompt, and [`stats`] are what they recorded. [`runtime`] is where Rust's
//! part of it runs.

mod request;
mod response;

mod agent;
mod engine;
mod episode;
mod executor;
mod group;
mod host;
mod recipe;
mod stats;

mod mailbox;
mod runtime;

pub(crate) use agent::{AgentCall, AgentDesk, AgentPlan, NativeAgentWorkflow, agent_needs_python};
pub(crate) use engine::{Call, Engine};
pub(crate) use episode::{Episode, LoopWorkflow};
pub(crate) use executor::{Executor, Task};
pub(crate) use host::{Host, HostedWorkflow};
pub(crate) use mailbox::Mailbox;
pub(crate) use recipe::{BuiltInWorkflow, extract_answer, needs_python, verify_answer};
pub(crate) use response::ModelResponse;
pub(crate) use stats::{record, recorded};
