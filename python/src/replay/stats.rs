//! What a buffer says of itself, as a dict with marin's names and ours.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rollyard_core::replay::{Lengths, Stats};

pub(super) fn as_dict<'py>(
    py: Python<'py>,
    stats: &Stats,
    batches_added: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("total_size", stats.size)?;
    dict.set_item("env_sizes", &stats.env_sizes)?;
    dict.set_item("num_environments", stats.env_sizes.len())?;
    dict.set_item("total_batches_added", batches_added)?;
    dict.set_item("total_batches_sampled", stats.batches_sampled)?;
    dict.set_item("current_step", stats.step)?;
    dict.set_item("added", stats.flow.inserted)?;
    dict.set_item("sampled", stats.flow.sampled)?;
    dict.set_item("retired", stats.retired)?;
    let dropped = PyDict::new(py);
    for (reason, count) in &stats.dropped {
        dropped.set_item(reason.name(), count)?;
    }
    dict.set_item("dropped", dropped)?;
    dict.set_item("groups", stats.groups)?;
    dict.set_item("groups_without_variance", stats.groups_without_variance)?;
    dict.set_item("ages_steps", &stats.ages)?;
    let lengths = PyDict::new(py);
    for (env, sides) in stats.census.envs() {
        let both = PyDict::new(py);
        both.set_item("generated", of_lengths(py, &sides.generated)?)?;
        both.set_item("trained", of_lengths(py, &sides.trained)?)?;
        lengths.set_item(env, both)?;
    }
    dict.set_item("lengths", lengths)?;
    Ok(dict)
}

/// How many, how long on average, and how many up to each length that is one below a power of two.
fn of_lengths<'py>(py: Python<'py>, lengths: &Lengths) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", lengths.count())?;
    dict.set_item("mean", lengths.mean())?;
    let boxes = PyDict::new(py);
    for (longest, count) in lengths.boxes().filter(|(_, count)| *count > 0) {
        boxes.set_item(longest, count)?;
    }
    dict.set_item("boxes", boxes)?;
    Ok(dict)
}
