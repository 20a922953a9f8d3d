//! Episodes of workflows that run in this process, on an asyncio loop in a thread of its own.
//!
//! The executor's future of such an episode puts a letter into the loop's mailbox, and Python makes a task of it;
//! what the task returned comes back through a channel. Dropping the future cancels the task.

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};
use rollyard_core::batch::TensorDict;
use rollyard_engine::episode::{
    Context, Data, EpisodeError, PromptAndCompletion, SharedWorkflow, Trajectory, Workflow,
};
use rollyard_engine::generate::{EngineError, SharedEngine};
use rollyard_engine::returned::{EXPECTED, Part, trajectory};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::oneshot;

use super::mailbox::{Mailbox, Slot};
use crate::batch::{Dict, Given};
use crate::errors::BatchError;

type Answer = Result<Option<Trajectory>, EpisodeError>;

/// A context as Python makes its own of it: run, task, sample, attempt, whether for evaluation, seed.
type Told<'a> = (&'a str, u64, u32, u32, bool, u64);

/// Tensors, reward, messages, prompt and completion, extra fields; JSON where it is not numbers.
type GivenPart<'py> = (Option<Vec<Given<'py>>>, Option<f64>, Vec<String>, Option<(String, String)>, String);

/// One episode that Python is to run.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Episode {
    context: Context,
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    arrays: Arc<OnceLock<String>>,
}

#[pymethods]
impl Episode {
    #[getter]
    fn context(&self) -> Told<'_> {
        let Context { run, task_id, sample_idx, attempt, is_eval, seed } = &self.context;
        (run, *task_id, *sample_idx, *attempt, *is_eval, *seed)
    }

    /// It returned this; no parts reject it. `arrays` says whose arrays they were.
    fn finish(&self, py: Python<'_>, arrays: String, parts: Vec<GivenPart<'_>>) -> PyResult<()> {
        self.arrays.get_or_init(|| arrays);
        let parts = parts.into_iter().map(part_of).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.end(trajectory(parts, &self.context)));
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

    /// It returned something that no trajectory can be made of.
    fn refuse(&self, found: String) {
        self.end(Err(EpisodeError::WrongType { found, expected: EXPECTED }));
    }
}

impl Episode {
    fn end(&self, answer: Answer) {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The executor gave it up.
            let _ = sender.send(answer);
        }
    }
}

fn part_of((tensors, reward, messages, text, extra): GivenPart<'_>) -> PyResult<Part> {
    let raw = |text: String| RawValue::from_string(text);
    Ok(Part {
        tensors: tensors.map(tensors_of).transpose()?,
        reward,
        messages: messages.into_iter().map(raw).collect::<Result<_, _>>().map_err(BatchError::of)?,
        text: text.map(|(prompt, completion)| PromptAndCompletion { prompt, completion }),
        extra: serde_json::from_str(&extra).map_err(BatchError::of)?,
    })
}

/// Copies: the workflow may go on to use its arrays.
fn tensors_of(given: Vec<Given<'_>>) -> PyResult<TensorDict> {
    let dict = Dict::of(given)?;
    Ok(dict.views()?.into_iter().map(|(key, view)| (key.to_owned(), view.to_tensor())).collect())
}

/// A workflow with the data of one task: Python's own objects, which no other process could have.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct LoopWorkflow {
    inner: Arc<OnLoop>,
}

pub(super) struct OnLoop {
    slot: Arc<Slot>,
    /// `begin(id, episode, workflow, data)` makes a task, `cancel(id)` ends it.
    begin: Py<PyAny>,
    cancel: Py<PyAny>,
    workflow: Py<PyAny>,
    data: Py<PyAny>,
}

#[pymethods]
impl LoopWorkflow {
    #[new]
    fn new(
        mailbox: &Mailbox,
        begin: Py<PyAny>,
        cancel: Py<PyAny>,
        workflow: Py<PyAny>,
        data: Py<PyAny>,
    ) -> Self {
        let inner = OnLoop { slot: mailbox.slot(), begin, cancel, workflow, data };
        Self { inner: Arc::new(inner) }
    }
}

impl LoopWorkflow {
    pub(super) fn on_loop(&self) -> Arc<OnLoop> {
        self.inner.clone()
    }

    pub(crate) fn shared(&self, arrays: Arc<OnceLock<String>>) -> SharedWorkflow {
        Arc::new(Runner { on_loop: self.inner.clone(), arrays })
    }
}

struct Runner {
    on_loop: Arc<OnLoop>,
    arrays: Arc<OnceLock<String>>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner(a workflow in Python)")
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl OnLoop {
    /// Has Python begin what `call` stands for, and waits for its answer. Dropping the future cancels it there.
    pub(super) async fn run<C, T>(
        self: Arc<Self>,
        call: C,
        answer: oneshot::Receiver<Result<T, EpisodeError>>,
    ) -> Result<T, EpisodeError>
    where
        C: PyClass + Into<PyClassInitializer<C>> + Send + 'static,
    {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let mut held = Held { workflow: self.clone(), id, is_over: false };
        let slot = self.slot.clone();
        slot.post(Box::new(move |py| {
            let call = Py::new(py, call)?;
            self.begin.call1(py, (id, call, &self.workflow, &self.data)).map(drop)
        }));
        let answer = answer.await;
        held.is_over = true;
        let closed = || EpisodeError::Workflow("the loop that ran the episode was closed".to_owned());
        answer.unwrap_or_else(|_| Err(closed()))
    }
}

impl Workflow for Runner {
    /// The engine is not used: Python has it as an object of its own.
    fn run_episode<'a>(
        &'a self,
        _engine: &'a SharedEngine,
        _data: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Answer> {
        let (sender, receiver) = oneshot::channel();
        let episode = Episode {
            context: context.clone(),
            answer: Mutex::new(Some(sender)),
            arrays: self.arrays.clone(),
        };
        Box::pin(self.on_loop.clone().run(episode, receiver))
    }
}

/// An episode that somebody waits for.
struct Held {
    workflow: Arc<OnLoop>,
    id: u64,
    is_over: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_over {
            let (workflow, id) = (self.workflow.clone(), self.id);
            self.workflow.slot.post(Box::new(move |py| workflow.cancel.call1(py, (id,)).map(drop)));
        }
    }
}
