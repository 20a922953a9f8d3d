//! Batches as a caller has them: ours, another program's, or from before rollouts had metadata.
//!
//! All of a call is read before any of it is added.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use rollyard_core::replay::{NewGroup, ReplayError as CoreError};
use rollyard_core::rollout::{Metadata, Rollout as CoreRollout};
use std::sync::Arc;

use super::raised;
use crate::errors::{ReplayError, RolloutError};
use crate::foreign::{inner_of, lacking, metadata_of};
use crate::numbers::floats;

pub(super) struct Given {
    pub(super) groups: Vec<NewGroup>,
    /// The groups of each batch.
    pub(super) group_counts: Vec<usize>,
}

impl Given {
    /// `loss_module` computes advantages, if there is one.
    pub(super) fn read(batches: &Bound<'_, PyAny>, loss_module: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut given = Self { groups: Vec::new(), group_counts: Vec::new() };
        for (nth, batch) in batches.try_iter()?.enumerate() {
            let batch = batch?;
            let metadata =
                batch.getattr_opt("metadata")?.map(|metadata| metadata_of(&metadata)).transpose()?;
            let metadata = metadata.flatten().map(Metadata::from).filter(|metadata| !metadata.is_missing());
            let before = given.groups.len();
            for (group_nth, group) in part(&batch, intern!(batch.py(), "groups"))?.try_iter()?.enumerate() {
                let place = |rollout| format!("batch {nth}: rollout {rollout} in group {group_nth}");
                given.groups.push(read_group(&group?, metadata.as_ref(), loss_module, place)?);
            }
            given.group_counts.push(given.groups.len() - before);
        }
        Ok(given)
    }
}

fn read_group(
    group: &Bound<'_, PyAny>,
    of_batch: Option<&Metadata>,
    loss_module: Option<&Bound<'_, PyAny>>,
    place: impl Fn(usize) -> String,
) -> PyResult<NewGroup> {
    let given = part(group, intern!(group.py(), "rollouts"))?;
    let mut rollouts = Vec::with_capacity(given.len().unwrap_or(0));
    for (nth, rollout) in given.try_iter()?.enumerate() {
        let rollout = rollout?;
        let read = inner_of(&rollout).and_then(|rollout| with_metadata_of(rollout, of_batch));
        rollouts.push(read.map_err(|error| placed(rollout.py(), &place(nth), error))?);
    }
    let advantages = loss_module.map(|module| {
        let own = PyList::new(given.py(), given.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
        floats("advantages", &module.call_method1("compute_advantages", (own,))?)
    });
    Ok(NewGroup { rollouts, advantages: advantages.transpose()? })
}

/// A rollout that does not say where it came from is of old data, and came from where its batch did.
fn with_metadata_of(rollout: Arc<CoreRollout>, batch: Option<&Metadata>) -> PyResult<Arc<CoreRollout>> {
    match batch {
        Some(metadata) if rollout.metadata.is_missing() => {
            Ok(Arc::new(rollout.with_metadata(metadata.clone()).map_err(RolloutError::of)?))
        }
        _ => Ok(rollout),
    }
}

fn part<'py>(whole: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    whole.getattr_opt(name)?.ok_or_else(|| lacking(whole, &name.to_string_lossy()))
}

/// The same error with the place in front. What is none of ours stays as it is.
fn placed(py: Python<'_>, place: &str, error: PyErr) -> PyErr {
    let told = format!("{place}: {}", error.value(py));
    if error.is_instance_of::<RolloutError>(py) {
        RolloutError::new_err(told)
    } else if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(told)
    } else if error.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(told)
    } else {
        error
    }
}

/// The core counts the groups of all batches together; whoever gave them counts in each.
pub(super) fn raised_in_batch(mut error: CoreError, group_counts: &[usize]) -> PyErr {
    let number = match &mut error {
        CoreError::EmptyGroup { group }
        | CoreError::Advantages { group, .. }
        | CoreError::NotFinite { group, .. }
        | CoreError::MissingMetadata { group, .. } => group,
        _ => return raised(error),
    };
    let mut batch = 0;
    for count in group_counts {
        if *number < *count {
            break;
        }
        *number -= count;
        batch += 1;
    }
    ReplayError::new_err(format!("batch {batch}: {error}"))
}
