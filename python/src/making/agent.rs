//! Agents as workflows, as Python sets them up: the gateway that they ask, and those that run on a loop here.

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use rollyard_engine::episode::{Context, Data, EpisodeError, SharedWorkflow};
use rollyard_engine::generate::EngineError;
use rollyard_gateway::agent::{
    Access, Agent, AgentPlan as CorePlan, AgentRecipe, AgentRecipeError, CommandAgent, Desk, HostedAgent,
    Returned, SharedAgent, Told,
};
use rollyard_gateway::model::{ANY_NAME, ModelSettings};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

use super::episode::{LoopWorkflow, OnLoop};
use super::host::{Host, raised};
use super::runtime::wait;
use crate::errors::WorkflowError;
use crate::tokenizer::Tokenizer;

/// A gateway of an executor's own. It listens from the first episode on.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct AgentDesk {
    inner: Arc<Desk>,
}

#[pymethods]
impl AgentDesk {
    #[new]
    fn new(tokenizer: &Tokenizer, model: String) -> Self {
        // Agents have names of models written into them.
        let aliases = vec![ANY_NAME.to_owned()];
        let tokenizer = tokenizer.inner.clone();
        let (context_tokens, grammar) = (None, None);
        let settings = ModelSettings { name: model, aliases, tokenizer, context_tokens, grammar };
        Self { inner: Desk::new(settings) }
    }

    /// `recipe` is JSON; `host` is needed where [`agent_needs_python`] says so.
    fn plan(&self, py: Python<'_>, recipe: &str, host: Option<&Host>) -> PyResult<AgentPlan> {
        let host = host.map(Host::core);
        let built = read(recipe)?.build(self.inner.clone(), host.as_ref());
        Ok(AgentPlan { inner: wait(py, built)?.map_err(WorkflowError::of)? })
    }

    /// Where agents ask, once the first has come.
    fn addresses(&self) -> Vec<String> {
        self.inner.addresses().iter().map(ToString::to_string).collect()
    }

    /// Returns when all agents have ended and nothing listens any more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.close())
    }
}

/// How agents are run: with one of them it is a workflow.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct AgentPlan {
    inner: CorePlan,
}

#[pymethods]
impl AgentPlan {
    /// A program.
    fn command(&self, line: &str) -> PyResult<NativeAgentWorkflow> {
        Ok(self.with(Arc::new(CommandAgent::new(line).map_err(WorkflowError::of)?)))
    }

    /// `module.Class` or `module.function` in worker processes; `kwargs` is JSON.
    fn hosted(
        &self,
        py: Python<'_>,
        host: &Host,
        path: &str,
        kwargs: &str,
        environment: Option<bool>,
    ) -> PyResult<NativeAgentWorkflow> {
        let kwargs = serde_json::from_str(kwargs).map_err(WorkflowError::of)?;
        let loaded = wait(py, HostedAgent::load(host.core(), path, kwargs, environment))?;
        Ok(self.with(Arc::new(loaded.map_err(raised)?)))
    }

    /// On a loop of this process, whose `begin` is given an [`AgentCall`].
    fn on_loop(&self, workflow: &LoopWorkflow) -> NativeAgentWorkflow {
        self.with(Arc::new(LoopAgent { on_loop: workflow.on_loop() }))
    }
}

impl AgentPlan {
    fn with(&self, agent: SharedAgent) -> NativeAgentWorkflow {
        NativeAgentWorkflow { inner: Arc::new(self.inner.with(agent)) }
    }
}

/// A workflow whose episodes are agents.
#[pyclass(frozen, name = "AgentWorkflow", module = "rollyard._rollyard")]
pub(crate) struct NativeAgentWorkflow {
    inner: SharedWorkflow,
}

impl NativeAgentWorkflow {
    pub(crate) fn shared(&self) -> SharedWorkflow {
        self.inner.clone()
    }
}

/// Whether the reward is a function of Python's.
#[pyfunction]
pub(crate) fn agent_needs_python(recipe: &str) -> PyResult<bool> {
    let recipe = read(recipe)?;
    // What cannot be is said here, and not by every episode.
    recipe.opening().map_err(WorkflowError::of)?;
    recipe.needs_python().map_err(|error| WorkflowError::of(AgentRecipeError::Reward(error.into())))
}

fn read(recipe: &str) -> PyResult<AgentRecipe> {
    serde_json::from_str(recipe).map_err(WorkflowError::of)
}

/// One run of an agent that Python is to make.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct AgentCall {
    told: String,
    answer: Mutex<Option<oneshot::Sender<Result<Returned, EpisodeError>>>>,
}

#[pymethods]
impl AgentCall {
    /// Where to ask, and which episode it is, as JSON.
    #[getter]
    fn told(&self) -> &str {
        &self.told
    }

    /// It returned this, as JSON.
    fn finish(&self, value: &str) -> PyResult<()> {
        self.end(Ok(Returned::Value(serde_json::from_str(value).map_err(WorkflowError::of)?)));
        Ok(())
    }

    /// It raised an exception.
    fn fail(&self, told: String, may_pass: bool) {
        self.end(Err(if may_pass {
            EpisodeError::Workflow(told)
        } else {
            EpisodeError::Engine(EngineError::BadRequest(told))
        }));
    }
}

impl AgentCall {
    fn end(&self, answer: Result<Returned, EpisodeError>) {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The executor gave it up.
            let _ = sender.send(answer);
        }
    }
}

struct LoopAgent {
    on_loop: Arc<OnLoop>,
}

impl fmt::Debug for LoopAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoopAgent(an agent in Python)")
    }
}

impl Agent for LoopAgent {
    /// The data is not used: Python has it as objects of its own.
    fn run<'a>(
        &'a self,
        _data: &'a Data,
        context: &'a Context,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Returned, EpisodeError>> {
        let (sender, receiver) = oneshot::channel();
        let told = serde_json::to_string(&Told::new(access, context)).expect("texts and numbers are JSON");
        let call = AgentCall { told, answer: Mutex::new(Some(sender)) };
        Box::pin(self.on_loop.clone().run(call, receiver))
    }
}
