//! Rollouts as another program has them: any objects with the attributes of ours.
//!
//! A trainer that changes an import still has environments that make rollouts of another class, and pickles of
//! batches from before rollouts had metadata. They become ours here, by their attributes, and from there on
//! nothing knows where they came from.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rollyard_core::rollout::{Metadata, Rollout as CoreRollout};
use std::sync::Arc;

use crate::errors::RolloutError;
use crate::rollout::{FIELDS, NEEDED, Rollout, RolloutMetadata};

/// Ours as it is; another's read by its attributes.
#[pyfunction]
pub(crate) fn rollout_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Rollout>> {
    if let Ok(ours) = given.cast::<Rollout>() {
        return Ok(ours.clone());
    }
    let py = given.py();
    let fields = PyDict::new(py);
    for (nth, name) in FIELDS.into_iter().enumerate() {
        let Some(value) = given.getattr_opt(name)? else {
            if nth < NEEDED {
                return Err(lacking(given, name));
            }
            continue;
        };
        match name {
            "metadata" => fields.set_item(name, metadata_of(&value)?)?,
            // A truth of numpy or JAX is no `bool`.
            "is_truncated" | "exact" => fields.set_item(name, value.is_truthy()?)?,
            _ => fields.set_item(name, value)?,
        }
    }
    Ok(py.get_type::<Rollout>().call((), Some(&fields))?.cast_into::<Rollout>()?)
}

pub(crate) fn inner_of(given: &Bound<'_, PyAny>) -> PyResult<Arc<CoreRollout>> {
    match given.cast::<Rollout>() {
        Ok(ours) => Ok(ours.get().inner.clone()),
        Err(_) => Ok(rollout_of(given)?.get().inner.clone()),
    }
}

/// `None` if there is nothing.
pub(crate) fn metadata_of(given: &Bound<'_, PyAny>) -> PyResult<Option<RolloutMetadata>> {
    if given.is_none() {
        return Ok(None);
    }
    if let Ok(ours) = given.extract::<RolloutMetadata>() {
        return Ok(Some(ours));
    }
    let field = |name| given.getattr_opt(name)?.ok_or_else(|| lacking(given, name));
    let metadata = Metadata {
        worker_id: field("worker_id")?.extract()?,
        timestamp: field("timestamp")?.extract()?,
        weight_step: field("weight_step")?.extract()?,
        ..Metadata::default()
    };
    Ok(Some(RolloutMetadata::from(&metadata)))
}

/// The rollout with what its own metadata does not say as `stamp` says it.
#[pyfunction]
pub(crate) fn stamp(given: &Bound<'_, PyAny>, stamp: RolloutMetadata) -> PyResult<Rollout> {
    let rollout = inner_of(given)?;
    let metadata = rollout.metadata.completed_by(&Metadata::from(stamp));
    Ok(rollout.with_metadata(metadata).map_err(RolloutError::of)?.into())
}

/// It is not what was asked for.
pub(crate) fn lacking(given: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let kind = given.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("a {kind} was given, which has no {name}"))
}
