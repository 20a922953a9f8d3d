//! What a model can call while it answers.
//!
//! A [`Tool`] has a name, a JSON schema for the template, and a function behind it. [`syntax`] finds the calls in
//! what a model wrote. A call that is malformed or fails is told to the model as the result of the call: it is
//! part of the episode, and no reason to fail it.

mod call;
mod command;
pub mod syntax;
mod toolbox;

pub use call::{Broken, Calls, ToolCall};
pub use command::CommandTool;
pub use syntax::ToolSyntax;
pub use toolbox::{ToolBox, ToolBoxError, ToolResult};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

use crate::episode::Context;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// The model called it wrongly.
    #[error("{0}")]
    BadArguments(String),
    #[error("{0}")]
    Failed(String),
    #[error("no answer within {secs} s")]
    Timeout { secs: f64 },
}

pub trait Tool: Send + Sync + fmt::Debug {
    fn name(&self) -> &str;

    /// As the chat template is given it: `{"type": "function", "function": {"name": …, "parameters": …}}`.
    fn schema(&self) -> &RawValue;

    /// What the model is told. `arguments` is whatever JSON the model wrote, mostly an object.
    fn call<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<String, ToolError>>;
}

pub type SharedTool = Arc<dyn Tool>;
