//! An agent that is a function in Python, `async def run(data, …)`, in worker processes.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_engine::episode::{Context, Data, EpisodeError};
use rollyard_engine::host::{Host, HostError, Load};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::{Access, Agent, Returned, Told};

/// Says whether a name is an agent's or a workflow's.
const KIND_OF: &str = "rollyard.agents.kind_of";

/// `module.Class` or `module.function`, imported by each worker.
#[derive(Clone, Debug)]
pub struct HostedAgent {
    host: Host,
    handle: u64,
}

/// What a function of Python's is called with.
#[derive(Serialize)]
struct Arguments<'a> {
    args: (&'a RawValue, Told<'a>),
    kwargs: Map<String, Value>,
}

impl HostedAgent {
    /// `environment` sets the variables of the process while it runs, one episode at a time; if left out, it does where
    /// the function takes nothing that would say where to ask.
    pub async fn load(
        host: Host,
        path: &str,
        kwargs: Map<String, Value>,
        environment: Option<bool>,
    ) -> Result<Self, HostError> {
        let handle = host.load(Load::Agent { path: path.to_owned(), kwargs, environment }).await?;
        Ok(Self { host, handle })
    }

    async fn ask(&self, data: &Data, context: &Context, access: &Access) -> Result<Returned, EpisodeError> {
        let arguments = Arguments { args: (data.json(), Told::new(access, context)), kwargs: Map::new() };
        let arguments = to_raw_value(&arguments).expect("texts and numbers are JSON");
        let value = self.host.call(self.handle, &arguments).await?;
        let value = serde_json::from_str(value.get());
        value.map(Returned::Value).map_err(|error| EpisodeError::Workflow(error.to_string()))
    }
}

impl Agent for HostedAgent {
    fn run<'a>(
        &'a self,
        data: &'a Data,
        context: &'a Context,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Returned, EpisodeError>> {
        self.ask(data, context, access).boxed()
    }
}

/// Whether `module.Class` or `module.function` is an agent; if not, it is a workflow, or an error.
pub async fn is_agent(host: &Host, path: &str) -> Result<bool, HostError> {
    let handle = host.load(Load::Function { path: KIND_OF.to_owned() }).await?;
    let arguments = to_raw_value(&json!({"args": [path], "kwargs": {}})).expect("texts are JSON");
    Ok(host.call(handle, &arguments).await?.get() == "\"agent\"")
}
