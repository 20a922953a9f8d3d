//! Runs user code in Python processes of its own, so that its crash is an event and not an outage.
//!
//! A [`Host`] keeps so many worker processes alive. Each imports workflows and functions by their name, has an
//! engine of its own made from the same configuration, and runs many episodes at once on an asyncio loop. Work
//! goes to the worker with the least of it. A worker that dies is replaced, its episodes end with an error that
//! another attempt may get past, and its successor is told everything that was said to all of them: what to
//! import, which weights are current, whether to wait. Workers end when their pipe does, so none outlives us.
//!
//! Read in this order: [`frame`] is what goes through the pipe, [`process`] one worker, [`shift`] how the
//! workers are kept, [`workflow`], [`reward`] and [`tool`] what they are to the rest of us.

mod frame;
mod process;
mod reward;
mod shift;
mod tool;
mod workflow;

pub use frame::Load;
pub use reward::PythonReward;
pub use tool::PythonTool;
pub use workflow::PythonWorkflow;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::lines::Printed;
use crate::stats::Stats;
use frame::{Answer, Order};
use shift::Shift;

/// Where the interpreter is looked for if nobody says.
pub const PYTHON_VARIABLE: &str = "ROLLYARD_PYTHON";

#[derive(Clone, Debug)]
pub struct HostConfig {
    /// `ROLLYARD_PYTHON`, else `python3`, if left out. The package `rollyard` must be installed there.
    pub python: Option<PathBuf>,
    pub processes: NonZeroUsize,
    /// Functions that are not `async` run in so many threads a process.
    pub threads: NonZeroUsize,
    /// What each worker makes its engine of.
    pub engine: Option<Box<RawValue>>,
    /// Folders to import from, besides the interpreter's own.
    pub sys_path: Vec<String>,
    /// A worker that is not ready by then has failed.
    pub start_timeout: Duration,
    /// Who is told what user code prints; our own standard error, if left out.
    pub printed: Option<Printed>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            python: None,
            processes: NonZeroUsize::MIN,
            threads: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
            engine: None,
            sys_path: Vec::new(),
            start_timeout: Duration::from_secs(120),
            printed: None,
        }
    }
}

impl HostConfig {
    fn interpreter(&self) -> PathBuf {
        interpreter(self.python.as_deref())
    }
}

/// The one that is named, `ROLLYARD_PYTHON`, or `python3`.
pub(crate) fn interpreter(python: Option<&Path>) -> PathBuf {
    let named = || std::env::var_os(PYTHON_VARIABLE).map(PathBuf::from);
    python.map(Path::to_owned).or_else(named).unwrap_or_else(|| PathBuf::from("python3"))
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum HostError {
    #[error("Python cannot be started ({reason}); set {PYTHON_VARIABLE} to the interpreter to use: {python}")]
    NoPython { reason: String, python: String },
    /// In the middle of something; another worker may get through it.
    #[error("{0}")]
    Lost(String),
    /// None of them gets far enough to do anything.
    #[error("worker processes end as soon as they are started: {0}")]
    Failing(String),
    #[error("{0}")]
    Load(String),
    #[error("{told}")]
    Raised { told: String, may_pass: bool, timed_out: bool },
    #[error("a worker process gave an answer of another kind than was asked for")]
    Confused,
    #[error("the worker processes were stopped")]
    Closed,
}

/// Worker processes. Dropping the last of its clones ends them.
#[derive(Clone, Debug)]
pub struct Host {
    shift: Arc<Shift>,
}

impl Host {
    /// Starts the workers, and waits until one of them is ready. What they record is added to `stats`.
    pub async fn start(config: HostConfig, stats: &'static Stats) -> Result<Self, HostError> {
        let host = Self { shift: Shift::start(config, stats) };
        host.shift.worker().await?;
        Ok(host)
    }

    /// Imports a workflow or function in every worker, and in those that come later. Gives its number.
    pub async fn load(&self, load: Load) -> Result<u64, HostError> {
        self.shift.worker().await?;
        let (handle, workers) = self.shift.add_load(load.clone());
        let load = &load;
        let asked = workers.iter().map(async |worker| {
            worker.ask(|id| Order::Load { id, handle, load }.frame()).await.answer().await
        });
        for answer in join_all(asked).await {
            // Those that died are told again when they are replaced.
            if let Ok(Answer::Raised(raised)) = answer {
                self.shift.forget_load(handle);
                return Err(HostError::Load(raised.told));
            }
        }
        Ok(handle)
    }

    /// Calls a function with `{"args": […], "kwargs": {…}}`, and gives what it returned.
    pub async fn call(&self, handle: u64, arguments: &RawValue) -> Result<Box<RawValue>, HostError> {
        let worker = self.shift.worker().await?;
        let asked = worker.ask(|id| Order::Call { id, handle, arguments }.frame()).await;
        match asked.answer().await? {
            Answer::Value(value) => Ok(value),
            Answer::Raised(raised) => Err(raised.into()),
            _ => Err(HostError::Confused),
        }
    }

    /// When this returns, every worker knows that these weights are current.
    pub async fn set_version(&self, version: i32) {
        let workers = self.shift.set_version(version);
        self.tell_all(workers, |id| Order::SetVersion { id, version }).await;
    }

    /// The engines of all workers hold what they would send.
    pub async fn pause(&self) {
        let workers = self.shift.set_paused(true);
        self.tell_all(workers, |id| Order::Pause { id }).await;
    }

    pub async fn resume(&self) {
        let workers = self.shift.set_paused(false);
        self.tell_all(workers, |id| Order::Resume { id }).await;
    }

    /// The process ids of the workers that are up.
    pub fn pids(&self) -> Vec<u32> {
        self.shift.workers().iter().map(|worker| worker.pid).collect()
    }

    /// Whatever ends the workers that are up now, it is what they were given to do: their successors start at once.
    pub fn vouch(&self) -> Vec<u32> {
        let workers = self.shift.workers();
        workers.iter().for_each(|worker| worker.vouch());
        workers.iter().map(|worker| worker.pid).collect()
    }

    /// Ends these workers, whatever they are doing, and returns when none of them gets work any more. Others take their
    /// place.
    pub async fn replace(&self, pids: &[u32]) {
        for pid in pids {
            process::end_group(*pid);
        }
        self.shift.until_gone(pids).await;
    }

    /// Ends all workers, and returns when they have ended.
    pub async fn close(&self) {
        self.shift.close().await;
    }

    async fn tell_all(&self, workers: Vec<Arc<process::Worker>>, order: impl Fn(u64) -> Order<'static>) {
        let order = &order;
        let told = workers.iter().map(async |worker| {
            // A worker that is lost meanwhile is replaced by one that was told.
            let _ = worker.ask(|id| order(id).frame()).await.answer().await;
        });
        join_all(told).await;
    }
}

impl From<frame::Raised> for HostError {
    fn from(raised: frame::Raised) -> Self {
        Self::Raised { told: raised.told, may_pass: raised.may_pass, timed_out: raised.timed_out }
    }
}
