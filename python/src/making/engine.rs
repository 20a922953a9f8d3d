//! An engine over HTTP, as Python calls it.

use pyo3::prelude::*;
use rollyard_engine::clients::{EngineConfig, HttpEngine};
use rollyard_engine::generate::{Engine as _, EngineError as CoreError};
use std::sync::Arc;
use tokio::task::AbortHandle;

use super::mailbox::Mailbox;
use super::request::request_of;
use super::response::ModelResponse;
use super::runtime::{runtime, wait};
use crate::errors::{EngineError, EngineTimeoutError, EngineUnreachableError, NotExactError, RequestError};

#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Engine {
    pub(crate) inner: Arc<HttpEngine>,
}

#[pymethods]
impl Engine {
    /// Of its configuration as JSON. Nothing is sent yet.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config: EngineConfig = serde_json::from_str(config).map_err(RequestError::of)?;
        // Some of it belongs to the threads that will use it.
        let _entered = runtime(py)?.enter();
        let inner = HttpEngine::new(config).map_err(|error| raised(py, &error))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    #[getter]
    fn config(&self) -> PyResult<String> {
        serde_json::to_string(self.inner.config()).map_err(RequestError::of)
    }

    /// Sends the request; the loop that the mailbox belongs to completes the future.
    fn start(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        session: Option<String>,
        mailbox: &Mailbox,
        future: Py<PyAny>,
    ) -> PyResult<Call> {
        let request = request_of(request, session)?;
        let (engine, slot) = (self.inner.clone(), mailbox.slot());
        let task = runtime(py)?.spawn(async move {
            let answer = engine.generate(request).await;
            slot.post(Box::new(move |py| complete(py, future, answer.map(ModelResponse::from))));
        });
        Ok(Call { task: task.abort_handle() })
    }

    /// Sends the request and waits for the answer.
    fn generate(&self, request: &Bound<'_, PyAny>, session: Option<String>) -> PyResult<ModelResponse> {
        let py = request.py();
        let request = request_of(request, session)?;
        let engine = self.inner.clone();
        let answer = wait(py, async move { engine.generate(request).await })?;
        Ok(answer.map_err(|error| raised(py, &error))?.into())
    }

    #[getter]
    fn version(&self) -> i32 {
        self.inner.version()
    }

    fn set_version(&self, version: i32) {
        self.inner.set_version(version);
    }

    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.inner.clone();
        wait(py, async move { engine.pause().await })?.map_err(|error| raised(py, &error))
    }

    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.inner.clone();
        wait(py, async move { engine.resume().await })?.map_err(|error| raised(py, &error))
    }

    /// How each server fares, as JSON.
    fn servers(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.servers()).map_err(RequestError::of)
    }

    /// What the engine can be relied on for, as JSON.
    fn capabilities(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner.capabilities()).map_err(RequestError::of)
    }
}

/// A request under way.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Call {
    task: AbortHandle,
}

#[pymethods]
impl Call {
    /// Drops the request, and its connection with it.
    fn cancel(&self) {
        self.task.abort();
    }
}

/// On the loop's thread: whoever awaits the future goes on.
fn complete(py: Python<'_>, future: Py<PyAny>, answer: Result<ModelResponse, CoreError>) -> PyResult<()> {
    let future = future.bind(py);
    // It was cancelled while the answer was on its way.
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match answer {
        Ok(response) => future.call_method1("set_result", (response,))?,
        Err(error) => future.call_method1("set_exception", (raised(py, &error).into_value(py),))?,
    };
    Ok(())
}

/// With what a program needs to decide what to do next.
pub(crate) fn raised(py: Python<'_>, error: &CoreError) -> PyErr {
    let exception = match error {
        CoreError::Unreachable { .. } => EngineUnreachableError::of(error),
        CoreError::Timeout { .. } => EngineTimeoutError::of(error),
        CoreError::NotExact { .. } => NotExactError::of(error),
        CoreError::BadRequest(_) => RequestError::of(error),
        CoreError::Refused { .. }
        | CoreError::BadAnswer { .. }
        | CoreError::Interrupted { .. }
        | CoreError::Closed => EngineError::of(error),
    };
    let value = exception.value(py);
    let mut told = value.setattr("may_pass", error.may_pass());
    if let CoreError::Refused { status, .. } = error {
        told = told.and_then(|()| value.setattr("status", *status));
    }
    told.err().unwrap_or(exception)
}
