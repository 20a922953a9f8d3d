//! The executor, as Python drives it.
//!
//! Groups go out as one dict of tensors: those that the workflows returned, or those of their rollouts where Rust
//! made them. Everything that waits does so without the GIL, on the thread that asked.

use numpy::PyArray1;
use pyo3::prelude::*;
use rollyard_core::batch::{self, Layout, PadTo, PadValues, Side, TensorDict, views};
use rollyard_core::rollout::Rollout;
use rollyard_engine::episode::{Data, Trajectory};
use rollyard_engine::executor::{
    Accept, Executor as CoreExecutor, ExecutorConfig, ExecutorError as CoreError, Finished, Pace,
    Task as CoreTask, TaskId,
};
use rollyard_engine::group::{GroupRules, Incomplete};
use rollyard_engine::sink::{Archive, ArchiveSettings, Dump, DumpSettings, Naming, Sink, YardSink};
use rollyard_engine::yard::{YardClient, YardSettings};
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::agent::NativeAgentWorkflow;
use super::engine::Engine;
use super::episode::LoopWorkflow;
use super::group::{Group, groups_of};
use super::host::HostedWorkflow;
use super::recipe::BuiltInWorkflow;
use super::runtime::{runtime, wait};
use crate::batch::made;
use crate::errors::{BatchError, EpisodeError, ExecutorError, NotEnoughError, WaitTimeoutError};
use crate::tokenizer::Tokenizer;

/// Whose arrays they were, and the tensors: name, type, shape, bytes.
type Batch<'py> = (String, Vec<(String, &'static str, Vec<usize>, Bound<'py, PyArray1<u8>>)>);

/// What Python says once, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireConfig {
    run: String,
    max_concurrent_rollouts: NonZeroU32,
    consumer_batch_size: NonZeroU32,
    max_head_offpolicyness: Option<u32>,
    attempts: NonZeroU32,
    incomplete: String,
    episode_timeout_secs: Option<f64>,
    failures_in_a_row_max: Option<u64>,
    seed: u64,
    keep: bool,
    dump: Option<WireDump>,
    yard: Option<WireYard>,
}

/// Where every task is written down, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDump {
    fileroot: PathBuf,
    experiment: String,
    trial: String,
    tokens: bool,
}

/// The server that gets every group that was accepted, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireYard {
    url: String,
    run: String,
    token: Option<String>,
    patience_secs: f64,
}

impl WireYard {
    async fn open(self, salt: &str) -> PyResult<Arc<dyn Sink>> {
        let settings = YardSettings {
            url: self.url,
            run: self.run,
            token: self.token,
            patience: duration("patience_secs", self.patience_secs)?,
        };
        let client = YardClient::new(settings).map_err(ExecutorError::of)?;
        let sink = YardSink::open(client, Naming::new(salt), &serde_json::json!({})).await;
        Ok(Arc::new(sink.map_err(ExecutorError::of)?))
    }
}

impl WireDump {
    /// The files of each task, and all of them in one for the viewer.
    fn open(self, tokenizer: Option<&Tokenizer>, salt: &str) -> PyResult<[Arc<dyn Sink>; 2]> {
        let Self { fileroot, experiment, trial, tokens } = self;
        let tokenizer = tokenizer.map(|tokenizer| tokenizer.inner.clone());
        let folder = fileroot.join(&experiment).join(&trial);
        std::fs::create_dir_all(&folder).map_err(|error| {
            ExecutorError::new_err(format!("cannot make the folder ({error}): {}", folder.display()))
        })?;
        let settings = ArchiveSettings { naming: Naming::new(salt), experiment: experiment.clone(), tokens };
        let (archive, _) =
            Archive::open(&folder.join("rollouts.jsonl"), settings).map_err(ExecutorError::of)?;
        let dump = Dump::new(DumpSettings { fileroot, experiment, trial, tokenizer, tokens });
        Ok([Arc::new(dump), Arc::new(archive)])
    }
}

impl WireConfig {
    fn into_core(self) -> PyResult<ExecutorConfig> {
        let pace = Pace {
            max_concurrent: self.max_concurrent_rollouts,
            batch: self.consumer_batch_size,
            max_head_offpolicyness: self.max_head_offpolicyness,
        };
        let rules = GroupRules {
            attempts: self.attempts.get(),
            incomplete: self.incomplete.parse::<Incomplete>().map_err(ExecutorError::of)?,
            episode_timeout: self
                .episode_timeout_secs
                .map(|secs| duration("episode_timeout_secs", secs))
                .transpose()?,
            ..GroupRules::default()
        };
        let config = ExecutorConfig::new(pace);
        Ok(ExecutorConfig {
            run: self.run.into(),
            rules,
            seed: self.seed,
            failures_in_a_row_max: self.failures_in_a_row_max,
            keep: self.keep,
            ..config
        })
    }
}

#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Executor {
    inner: CoreExecutor,
    /// Whose arrays workflows return; the first that one returned says it for all.
    arrays: Arc<OnceLock<String>>,
}

/// A prompt with its workflow, to be submitted.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Task {
    inner: CoreTask,
}

/// Where a workflow runs: on a loop of this process, in worker processes, in Rust, or wherever an agent does.
#[derive(FromPyObject)]
enum AnyWorkflow<'py> {
    Here(PyRef<'py, LoopWorkflow>),
    Hosted(PyRef<'py, HostedWorkflow>),
    BuiltIn(PyRef<'py, BuiltInWorkflow>),
    Agent(PyRef<'py, NativeAgentWorkflow>),
}

#[pymethods]
impl Executor {
    /// `salt` makes the names of this executor's rollouts its own.
    #[new]
    fn new(
        py: Python<'_>,
        engine: &Engine,
        config: &str,
        tokenizer: Option<&Tokenizer>,
        salt: &str,
    ) -> PyResult<Self> {
        let mut config: WireConfig = serde_json::from_str(config).map_err(ExecutorError::of)?;
        let runtime = runtime(py)?.handle().clone();
        let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
        if let Some(dump) = config.dump.take() {
            sinks.extend(dump.open(tokenizer, salt)?);
        }
        if let Some(yard) = config.yard.take() {
            sinks.push(wait(py, yard.open(salt))??);
        }
        let inner = CoreExecutor::new(engine.inner.clone(), config.into_core()?, sinks, runtime);
        Ok(Self { inner, arrays: Arc::default() })
    }

    /// `data` is JSON. `accept` is asked with whose arrays they are and the group's tensors.
    fn task(
        &self,
        workflow: AnyWorkflow<'_>,
        data: &str,
        group_size: u32,
        accept: Option<Py<PyAny>>,
        is_eval: bool,
    ) -> PyResult<Task> {
        let zero = || ExecutorError::new_err("group_size is 0, but must be at least 1");
        let workflow = match workflow {
            AnyWorkflow::Here(workflow) => workflow.shared(self.arrays.clone()),
            AnyWorkflow::Hosted(workflow) => workflow.shared(self.arrays.clone()),
            AnyWorkflow::BuiltIn(workflow) => workflow.shared(),
            AnyWorkflow::Agent(workflow) => workflow.shared(),
        };
        Ok(Task {
            inner: CoreTask {
                id: None,
                data: Arc::new(Data::parse(data).map_err(ExecutorError::of)?),
                workflow,
                group_size: NonZeroU32::new(group_size).ok_or_else(zero)?,
                accept: accept.map(|accept| filter(accept, self.arrays.clone())),
                is_eval,
            },
        })
    }

    fn submit(&self, py: Python<'_>, task: &Task) -> PyResult<u64> {
        let task = task.inner.clone();
        Ok(py.detach(|| self.inner.submit(task)).map_err(raised)?.0)
    }

    fn wait<'py>(&self, py: Python<'py>, count: usize, timeout: Option<f64>) -> PyResult<Batch<'py>> {
        let timeout = limit(timeout)?;
        let finished = wait(py, self.inner.wait(count, timeout))?.map_err(raised)?;
        self.batch(py, finished)
    }

    /// The same sample by sample.
    fn wait_groups(&self, py: Python<'_>, count: usize, timeout: Option<f64>) -> PyResult<Vec<Group>> {
        let timeout = limit(timeout)?;
        let finished = wait(py, self.inner.wait(count, timeout))?.map_err(raised)?;
        py.detach(|| groups_of(finished)).map_err(ExecutorError::of)
    }

    /// `None` if it was rejected.
    fn wait_for_task<'py>(
        &self,
        py: Python<'py>,
        id: u64,
        timeout: Option<f64>,
    ) -> PyResult<Option<Batch<'py>>> {
        let timeout = limit(timeout)?;
        let finished = wait(py, self.inner.wait_for_task(TaskId(id), timeout))?.map_err(raised)?;
        finished.map(|finished| self.batch(py, vec![finished])).transpose()
    }

    fn rollout_batch<'py>(
        &self,
        py: Python<'py>,
        tasks: Vec<PyRef<'py, Task>>,
        timeout: Option<f64>,
    ) -> PyResult<Batch<'py>> {
        let timeout = limit(timeout)?;
        let tasks: Vec<CoreTask> = tasks.iter().map(|task| task.inner.clone()).collect();
        let finished = wait(py, self.inner.rollout_batch(tasks, timeout))?.map_err(raised)?;
        self.batch(py, finished)
    }

    /// `next` gives the next task, or `None` when there are no more. It is called on this thread.
    fn prepare_batch<'py>(
        &self,
        py: Python<'py>,
        next: Py<PyAny>,
        dynamic: bool,
        timeout: Option<f64>,
    ) -> PyResult<Batch<'py>> {
        let timeout = limit(timeout)?;
        let mut broke = None;
        let broken = &mut broke;
        let ask = move || {
            let given = Python::attach(|py| {
                let task: Option<Bound<'_, Task>> = next.call0(py)?.extract(py)?;
                Ok(task.map(|task| task.get().inner.clone()))
            });
            given.map_err(|error: PyErr| {
                *broken = Some(error);
                CoreError::Closed
            })
        };
        let finished = wait(py, self.inner.prepare_batch(ask, dynamic, timeout))?;
        if let Some(error) = broke {
            return Err(error);
        }
        self.batch(py, finished.map_err(raised)?)
    }

    /// Returns when everything that was submitted has ended.
    fn idle(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.inner.idle())?.map(drop).map_err(raised)
    }

    fn pause(&self, py: Python<'_>) {
        py.detach(|| self.inner.pause());
    }

    fn resume(&self, py: Python<'_>) {
        py.detach(|| self.inner.resume());
    }

    fn set_version(&self, py: Python<'_>, version: i32) {
        py.detach(|| self.inner.set_version(version));
    }

    fn cancel(&self, py: Python<'_>, id: u64) -> bool {
        py.detach(|| self.inner.cancel(TaskId(id)))
    }

    /// A look at everything, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&py.detach(|| self.inner.stats())).map_err(ExecutorError::of)
    }

    /// What runs, the longest first, as JSON.
    fn running(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&py.detach(|| self.inner.running())).map_err(ExecutorError::of)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }
}

impl Executor {
    /// What makes no batch is not lost: it is ready again.
    fn batch<'py>(&self, py: Python<'py>, finished: Vec<Finished>) -> PyResult<Batch<'py>> {
        match py.detach(|| tensors(&finished)) {
            Ok(dict) => Ok((arrays(&self.arrays), made(py, dict)?)),
            Err(error) => {
                py.detach(|| self.inner.give_back(finished));
                Err(BatchError::new_err(error))
            }
        }
    }
}

fn arrays(known: &OnceLock<String>) -> String {
    known.get().cloned().unwrap_or_else(|| "numpy".to_owned())
}

/// All groups below each other.
fn tensors(finished: &[Finished]) -> Result<TensorDict, String> {
    let mut dicts = Vec::new();
    for group in finished {
        for (sample_idx, trajectory) in group.trajectories() {
            let one = one_dict(trajectory);
            dicts.push(one.map_err(|error| format!("sample {sample_idx} of task {}: {error}", group.id))?);
        }
    }
    if dicts.len() == 1 {
        return Ok(dicts.pop().unwrap_or_default());
    }
    let parts: Vec<_> = dicts.iter().map(views).collect();
    batch::concat(&parts, &PadValues::default()).map_err(|error| error.to_string())
}

fn one_dict(trajectory: &Trajectory) -> Result<TensorDict, String> {
    if let Some(tensors) = &trajectory.tensors {
        return Ok(tensors.clone());
    }
    let rollouts: Option<Vec<&Rollout>> =
        trajectory.samples.iter().map(|sample| sample.rollout.as_ref()).collect();
    let rollouts =
        rollouts.ok_or("there is only text, because the engine gives no tokens; wait_groups has it")?;
    let layout = Layout { max_tokens: None, pad_token_id: 0, pad_to: PadTo::Longest, padding: Side::Right };
    batch::sequences(rollouts, &layout).map_err(|error| error.to_string())
}

/// Python's word on a group. Other tasks go to other threads while this one waits for the GIL.
fn filter(accept: Py<PyAny>, known: Arc<OnceLock<String>>) -> Accept {
    Arc::new(move |finished| {
        let dict = tensors(std::slice::from_ref(finished))?;
        tokio::task::block_in_place(|| {
            Python::attach(|py| {
                let said = accept.call1(py, (arrays(&known), made(py, dict)?))?;
                said.is_truthy(py)
            })
            .map_err(|error| error.to_string())
        })
    })
}

fn limit(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    timeout.map(|secs| duration("timeout", secs)).transpose()
}

fn duration(name: &str, secs: f64) -> PyResult<Duration> {
    let bad = |_| ExecutorError::new_err(format!("{name} is {secs}, which is no length of time"));
    Duration::try_from_secs_f64(secs).map_err(bad)
}

fn raised(error: CoreError) -> PyErr {
    match error {
        CoreError::Timeout { .. } => WaitTimeoutError::of(error),
        CoreError::NotEnough { .. } | CoreError::TooMany { .. } => NotEnoughError::of(error),
        CoreError::Failing { .. }
        | CoreError::AllFailed { .. }
        | CoreError::TaskFailed { .. }
        | CoreError::Stale { .. } => EpisodeError::of(error),
        CoreError::Closed | CoreError::Sink(_) | CoreError::BadId { .. } | CoreError::UnknownTask(_) => {
            ExecutorError::of(error)
        }
    }
}
