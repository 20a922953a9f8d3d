//! The workflows that run in Rust, as Python sets them up, and the maths verifier by itself.

use pyo3::prelude::*;
use rollyard_engine::episode::SharedWorkflow;
use rollyard_engine::reward::maths;
use rollyard_engine::workflow::{Recipe, RecipeError};

use super::host::Host;
use super::runtime::wait;
use crate::errors::{WorkerError, WorkflowError};
use crate::tokenizer::Tokenizer;

/// A workflow of which no episode runs in Python.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct BuiltInWorkflow {
    inner: SharedWorkflow,
}

#[pymethods]
impl BuiltInWorkflow {
    /// `recipe` is JSON; `host` is needed where [`needs_python`] says so.
    #[new]
    fn new(
        py: Python<'_>,
        recipe: &str,
        tokenizer: Option<&Tokenizer>,
        host: Option<&Host>,
    ) -> PyResult<Self> {
        let host = host.map(Host::core);
        let tokenizer = tokenizer.map(|tokenizer| tokenizer.inner.clone());
        let built = read(recipe)?.build(tokenizer, host.as_ref());
        Ok(Self { inner: wait(py, built)?.map_err(raised)? })
    }
}

impl BuiltInWorkflow {
    pub(crate) fn shared(&self) -> SharedWorkflow {
        self.inner.clone()
    }
}

/// Whether the reward or a tool is a function of Python's.
#[pyfunction]
pub(crate) fn needs_python(recipe: &str) -> PyResult<bool> {
    read(recipe)?.needs_python().map_err(raised)
}

/// Whether an answer means the same as the truth.
#[pyfunction]
pub(crate) fn verify_answer(py: Python<'_>, answer: &str, truth: &str) -> bool {
    py.detach(|| maths::verify(answer, truth))
}

/// The final answer in a text: the last box, or what stands behind the usual words.
#[pyfunction]
pub(crate) fn extract_answer<'a>(py: Python<'_>, text: &'a str) -> Option<&'a str> {
    py.detach(|| maths::extract(text))
}

fn read(recipe: &str) -> PyResult<Recipe> {
    serde_json::from_str(recipe).map_err(WorkflowError::of)
}

fn raised(error: RecipeError) -> PyErr {
    match error {
        RecipeError::Python(error) => super::host::raised(error),
        RecipeError::NoHost(_) => WorkerError::of(error),
        error => WorkflowError::of(error),
    }
}
