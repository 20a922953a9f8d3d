//! What workflows of this process recorded, and what came back from worker processes.

use pyo3::prelude::*;
use rollyard_engine::stats::Stats;

use crate::errors::RequestError;

/// One for the process. A child that was forked begins with a copy.
pub(crate) static RECORDED: Stats = Stats::new();

#[pyfunction]
pub(crate) fn record(scope: &str, name: &str, value: f64) -> PyResult<()> {
    RECORDED.record(scope, name, value).map_err(RequestError::of)
}

/// Everything as JSON; begins anew with `reset`.
#[pyfunction]
pub(crate) fn recorded(reset: bool) -> PyResult<String> {
    let recorded = if reset { RECORDED.take() } else { RECORDED.get() };
    serde_json::to_string(&recorded).map_err(RequestError::of)
}
