//! Agents that only know where to ask: `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL`.
//!
//! An [`AgentWorkflow`] opens a session for each episode at a [`Desk`], a gateway of the executor's own, and gives the
//! [`Agent`] its address and a key. What the agent asked is the rollout, to the token; what it [`Returned`] in the end
//! is its reward, unless a reward function judges its last answer. An agent is a program ([`CommandAgent`]), a function
//! in Python's worker processes ([`HostedAgent`]), or whatever implements the trait. [`AgentRecipe`] makes the
//! workflow of settings.

mod access;
mod command;
mod desk;
mod hosted;
mod judging;
mod line;
mod recipe;
mod returned;
mod workflow;

pub use access::{Access, Told};
pub use command::CommandAgent;
pub use desk::Desk;
pub use hosted::{HostedAgent, is_agent};
pub use line::{Line, LineError};
pub use recipe::{AgentRecipe, AgentRecipeError};
pub use returned::{Returned, Rewards};
pub use workflow::{AgentPlan, AgentWorkflow};

use futures_util::future::BoxFuture;
use rollyard_engine::episode::{Context, Data, EpisodeError};
use std::fmt;
use std::sync::Arc;

/// Something that solves a task by asking a model.
pub trait Agent: Send + Sync + fmt::Debug {
    /// Runs until it is done. Dropping the future ends the agent and all that it began.
    fn run<'a>(
        &'a self,
        data: &'a Data,
        context: &'a Context,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Returned, EpisodeError>>;
}

pub type SharedAgent = Arc<dyn Agent>;
