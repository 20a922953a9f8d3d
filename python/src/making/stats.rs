//! What workflows of this process recorded, and what came back from worker processes.
//!
//! Whoever forks holds the GIL, so a lock that is only taken with it is free in every child. What worker processes
//! send arrives without the GIL, and is therefore kept apart until somebody asks.

use pyo3::prelude::*;
use rollyard_engine::stats::Stats;
use std::sync::{Mutex, PoisonError};

use crate::errors::RequestError;

static RECORDED: Stats = Stats::new();

/// Of worker processes, each with the process that started them. They are few, and live as long as it does.
static FROM_WORKERS: Mutex<Vec<(u32, &'static Stats)>> = Mutex::new(Vec::new());

/// Where what new worker processes record is collected.
pub(crate) fn for_workers(_attached: Python<'_>) -> &'static Stats {
    let stats: &'static Stats = Box::leak(Box::default());
    let mut all = FROM_WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    all.push((std::process::id(), stats));
    stats
}

#[pyfunction]
pub(crate) fn record(scope: &str, name: &str, value: f64) -> PyResult<()> {
    RECORDED.record(scope, name, value).map_err(RequestError::of)
}

/// Everything as JSON; begins anew with `reset`.
#[pyfunction]
pub(crate) fn recorded(reset: bool) -> PyResult<String> {
    let all = FROM_WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    // A child that was forked has none of its parent's workers, and their locks may be held for ever.
    for (_, stats) in all.iter().filter(|(process, _)| *process == std::process::id()) {
        RECORDED.merge(&stats.take());
    }
    let recorded = if reset { RECORDED.take() } else { RECORDED.get() };
    serde_json::to_string(&recorded).map_err(RequestError::of)
}
