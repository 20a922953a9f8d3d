//! Worker processes, as Python starts them.

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use rollyard_engine::episode::{Context, Data, EpisodeError, SharedWorkflow, Trajectory, Workflow};
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::host::{Host as CoreHost, HostConfig, HostError, Load, PythonWorkflow};
use rollyard_gateway::agent::is_agent;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::runtime::wait;
use super::stats::for_workers;
use crate::errors::{WorkerError, WorkflowError};

/// What Python says once, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireConfig {
    python: PathBuf,
    processes: NonZeroUsize,
    threads: NonZeroUsize,
    engine: Option<Box<RawValue>>,
    sys_path: Vec<String>,
}

#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Host {
    inner: CoreHost,
}

#[pymethods]
impl Host {
    /// Returns when a worker is ready.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let WireConfig { python, processes, threads, engine, sys_path } =
            serde_json::from_str(config).map_err(WorkerError::of)?;
        let python = Some(python);
        let config = HostConfig { python, processes, threads, engine, sys_path, ..HostConfig::default() };
        let inner = wait(py, CoreHost::start(config, for_workers(py)))?.map_err(raised)?;
        Ok(Self { inner })
    }

    /// Imports `module.Class` in every worker; `kwargs` is JSON.
    fn workflow(&self, py: Python<'_>, path: &str, kwargs: &str) -> PyResult<HostedWorkflow> {
        let kwargs = serde_json::from_str(kwargs).map_err(WorkflowError::of)?;
        let workflow = wait(py, PythonWorkflow::load(self.inner.clone(), path, kwargs))?;
        Ok(HostedWorkflow { inner: Arc::new(workflow.map_err(raised)?) })
    }

    /// Whether `module.Class` or `module.function` is an agent and no workflow.
    fn is_agent(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        wait(py, is_agent(&self.inner, path))?.map_err(raised)
    }

    /// Imports `module.function` in every worker; gives its number.
    fn function(&self, py: Python<'_>, path: String) -> PyResult<u64> {
        wait(py, self.inner.load(Load::Function { path }))?.map_err(raised)
    }

    /// Calls a function with `{"args": […], "kwargs": {…}}`; gives what it returned, all of it JSON.
    fn call(&self, py: Python<'_>, function: u64, arguments: String) -> PyResult<String> {
        let arguments = RawValue::from_string(arguments).map_err(WorkflowError::of)?;
        let value = wait(py, self.inner.call(function, &arguments))?.map_err(raised)?;
        Ok(value.get().to_owned())
    }

    fn set_version(&self, py: Python<'_>, version: i32) -> PyResult<()> {
        wait(py, self.inner.set_version(version))
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.pause())
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.resume())
    }

    /// The process ids of the workers that are up.
    fn pids(&self) -> Vec<u32> {
        self.inner.pids()
    }

    /// Returns when all workers have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.close())
    }
}

impl Host {
    pub(super) fn core(&self) -> CoreHost {
        self.inner.clone()
    }
}

/// A workflow that was imported by worker processes.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct HostedWorkflow {
    inner: Arc<PythonWorkflow>,
}

impl HostedWorkflow {
    pub(crate) fn shared(&self, arrays: Arc<OnceLock<String>>) -> SharedWorkflow {
        Arc::new(Hosted { workflow: self.inner.clone(), arrays })
    }
}

/// The same, and says whose arrays it returned.
#[derive(Debug)]
struct Hosted {
    workflow: Arc<PythonWorkflow>,
    arrays: Arc<OnceLock<String>>,
}

impl Workflow for Hosted {
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Option<Trajectory>, EpisodeError>> {
        Box::pin(async move {
            let trajectory = self.workflow.run_episode(engine, data, context).await;
            if let Some(arrays) = self.workflow.arrays() {
                self.arrays.get_or_init(|| arrays.to_owned());
            }
            trajectory
        })
    }
}

pub(super) fn raised(error: HostError) -> PyErr {
    match error {
        HostError::Load(_) | HostError::Raised { .. } => WorkflowError::of(error),
        error => WorkerError::of(error),
    }
}
