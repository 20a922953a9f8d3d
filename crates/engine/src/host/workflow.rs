//! A workflow that runs in worker processes.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::OnceLock;

use super::frame::{Answer, Load, Order};
use super::{Host, HostError};
use crate::episode::{Context, Data, EpisodeError, Trajectory, Workflow};
use crate::generate::{EngineError, SharedEngine};
use crate::returned::{EXPECTED, trajectory};

/// `module.Class`, imported by each worker.
#[derive(Debug)]
pub struct PythonWorkflow {
    host: Host,
    handle: u64,
    path: String,
    arrays: OnceLock<String>,
}

impl PythonWorkflow {
    pub async fn load(host: Host, path: &str, kwargs: Map<String, Value>) -> Result<Self, HostError> {
        let handle = host.load(Load::Workflow { path: path.to_owned(), kwargs }).await?;
        Ok(Self { host, handle, path: path.to_owned(), arrays: OnceLock::new() })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whose arrays the workflow returns (`numpy`, `torch`, `jax`), once it has.
    pub fn arrays(&self) -> Option<&str> {
        self.arrays.get().map(String::as_str)
    }

    async fn run(&self, data: &Data, context: &Context) -> Result<Option<Trajectory>, EpisodeError> {
        let worker = self.host.shift.worker().await?;
        let told = context.into();
        let order = |id| Order::Episode { id, handle: self.handle, data: data.json(), context: told }.frame();
        match worker.ask(order).await.answer().await? {
            Answer::Returned(returned) => {
                self.arrays.get_or_init(|| returned.arrays);
                trajectory(returned.parts.into_iter().map(Into::into).collect(), context)
            }
            Answer::Raised(raised) => Err(HostError::from(raised).into()),
            Answer::WrongType { found } => Err(EpisodeError::WrongType { found, expected: EXPECTED }),
            Answer::Done | Answer::Value(_) => Err(HostError::Confused.into()),
        }
    }
}

impl Workflow for PythonWorkflow {
    /// The engine is not used: each worker has its own, made of the same configuration.
    fn run_episode<'a>(
        &'a self,
        _engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>> {
        Box::pin(self.run(data, context))
    }
}

impl From<HostError> for EpisodeError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Raised { told, may_pass: true, .. } => Self::Workflow(told),
            HostError::Raised { told, may_pass: false, .. } | HostError::Load(told) => {
                Self::Engine(EngineError::BadRequest(told))
            }
            error => Self::WorkerLost(error.to_string()),
        }
    }
}
