//! Tensor dicts: put together, taken apart, packed, shared out.
//!
//! Arrays cross the border as bytes with a type and a shape, so that every type a trainer has goes through
//! one door. Python gives them their looks (`rollyard/tensors.py`).

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rollyard_core::batch::balance::{Counts, share};
use rollyard_core::batch::{
    self, DType, Layout, PadTo, PadValues, Side, TensorDict, TensorView, Views, Weighted,
};
use rollyard_core::rollout::Rollout as CoreRollout;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::array::hand_over;
use crate::errors::BatchError;
use crate::rollout::Rollout;

/// An array on its way in: its name, type, shape and bytes.
pub(crate) type Given<'py> = (String, String, Vec<usize>, PyReadonlyArray1<'py, u8>);

/// An array on its way out.
pub(crate) type Made<'py> = (String, &'static str, Vec<usize>, Bound<'py, PyArray1<u8>>);

/// The arrays of one dict, held while Rust looks at them.
pub(crate) struct Dict<'py> {
    arrays: Vec<(String, DType, Vec<usize>, PyReadonlyArray1<'py, u8>)>,
}

impl<'py> Dict<'py> {
    pub(crate) fn of(given: Vec<Given<'py>>) -> PyResult<Self> {
        let arrays = given.into_iter().map(|(key, dtype, shape, bytes)| {
            let known = || DType::ALL.map(DType::name).join(", ");
            let unknown =
                || BatchError::new_err(format!("{key:?} is of type {dtype}; known are {}", known()));
            let dtype = DType::named(&dtype).ok_or_else(unknown)?;
            Ok((key, dtype, shape, bytes))
        });
        Ok(Self { arrays: arrays.collect::<PyResult<_>>()? })
    }

    pub(crate) fn views(&self) -> PyResult<Views<'_>> {
        let views = self.arrays.iter().map(|(key, dtype, shape, bytes)| {
            let view = TensorView::new(*dtype, shape, bytes.as_slice()?).map_err(BatchError::of)?;
            Ok((key.as_str(), view))
        });
        views.collect()
    }
}

pub(crate) fn made(py: Python<'_>, dict: TensorDict) -> PyResult<Vec<Made<'_>>> {
    dict.into_iter()
        .map(|(key, tensor)| {
            let (dtype, shape) = (tensor.dtype().name(), tensor.shape().to_vec());
            Ok((key, dtype, shape, hand_over(py, tensor)?))
        })
        .collect()
}

#[pyfunction]
pub(crate) fn concat<'py>(
    py: Python<'py>,
    dicts: Vec<Vec<Given<'py>>>,
    pad_value: f64,
) -> PyResult<Vec<Made<'py>>> {
    let dicts = dicts.into_iter().map(Dict::of).collect::<PyResult<Vec<_>>>()?;
    let views = dicts.iter().map(Dict::views).collect::<PyResult<Vec<_>>>()?;
    let pad = PadValues { default: pad_value, ..PadValues::default() };
    let all = py.detach(|| batch::concat(&views, &pad)).map_err(BatchError::of)?;
    made(py, all)
}

#[pyfunction]
pub(crate) fn split<'py>(
    py: Python<'py>,
    dict: Vec<Given<'py>>,
    sizes: Option<Vec<usize>>,
) -> PyResult<Vec<Vec<Made<'py>>>> {
    let dict = Dict::of(dict)?;
    let views = dict.views()?;
    let rows = views.values().next().and_then(|view| view.shape().first().copied()).unwrap_or(0);
    let sizes = sizes.unwrap_or_else(|| vec![1; rows]);
    let parts = py.detach(|| batch::split(&views, &sizes)).map_err(BatchError::of)?;
    parts.into_iter().map(|part| made(py, part)).collect()
}

#[pyfunction]
pub(crate) fn plan(py: Python<'_>, lengths: Vec<usize>, max_tokens: usize) -> PyResult<Vec<Vec<usize>>> {
    py.detach(|| batch::packing::plan(&lengths, max_tokens)).map_err(BatchError::of)
}

#[pyfunction]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    dict: Vec<Given<'py>>,
    max_tokens: usize,
) -> PyResult<Vec<Vec<Made<'py>>>> {
    let dict = Dict::of(dict)?;
    let views = dict.views()?;
    let bins = py.detach(|| batch::packing::pack(&views, max_tokens)).map_err(BatchError::of)?;
    bins.into_iter().map(|bin| made(py, bin)).collect()
}

#[pyfunction]
pub(crate) fn balance(
    py: Python<'_>,
    costs: Vec<u64>,
    ranks: usize,
    equal_size: bool,
) -> PyResult<Vec<Vec<usize>>> {
    let counts = if equal_size { Counts::Equal } else { Counts::Any };
    py.detach(|| share(&costs, ranks, counts)).map_err(BatchError::of)
}

#[pyfunction]
pub(crate) fn digest(py: Python<'_>, dict: Vec<Given<'_>>) -> PyResult<String> {
    let dict = Dict::of(dict)?;
    let views = dict.views()?;
    Ok(format!("{:032x}", py.detach(|| batch::digest(&views))))
}

/// How rows are laid out, as Python says it.
#[derive(FromPyObject)]
pub(crate) struct WireLayout {
    #[pyo3(item)]
    max_tokens: Option<usize>,
    #[pyo3(item)]
    pad_token_id: i32,
    #[pyo3(item)]
    pad_to_multiple: Option<usize>,
    #[pyo3(item)]
    pad_to: Option<usize>,
    #[pyo3(item)]
    padding_side: String,
}

impl TryFrom<WireLayout> for Layout {
    type Error = PyErr;

    fn try_from(wire: WireLayout) -> PyResult<Self> {
        let at_least_1 = |name: &str, value: usize| {
            let zero = || BatchError::new_err(format!("{name} is 0, but must be at least 1"));
            NonZeroUsize::new(value).ok_or_else(zero)
        };
        let pad_to = match (wire.pad_to, wire.pad_to_multiple) {
            (None, None) => PadTo::Longest,
            (Some(width), None) => PadTo::Exactly(width),
            (None, Some(multiple)) => PadTo::Multiple(at_least_1("pad_to_multiple", multiple)?),
            (Some(width), Some(multiple)) => {
                let both = format!("pad_to is {width} and pad_to_multiple is {multiple}; give one of them");
                return Err(BatchError::new_err(both));
            }
        };
        let padding = match wire.padding_side.as_str() {
            "right" => Side::Right,
            "left" => Side::Left,
            other => {
                let message = format!("padding_side is {other:?}, but must be \"right\" or \"left\"");
                return Err(BatchError::new_err(message));
            }
        };
        let max_tokens = wire.max_tokens.map(|most| at_least_1("max_tokens", most)).transpose()?;
        Ok(Self { max_tokens, pad_token_id: wire.pad_token_id, pad_to, padding })
    }
}

#[pyfunction]
pub(crate) fn sequences<'py>(
    py: Python<'py>,
    rollouts: Vec<Bound<'py, Rollout>>,
    layout: WireLayout,
) -> PyResult<Vec<Made<'py>>> {
    let rollouts = inner(&rollouts);
    let layout = Layout::try_from(layout)?;
    let dict = py.detach(|| batch::sequences(rollouts.iter().map(Arc::as_ref), &layout));
    made(py, dict.map_err(BatchError::of)?)
}

#[pyfunction]
pub(crate) fn training<'py>(
    py: Python<'py>,
    rollouts: Vec<Bound<'py, Rollout>>,
    advantages: Vec<f32>,
    layout: WireLayout,
    oldest_version: Option<i32>,
) -> PyResult<Vec<Made<'py>>> {
    let rollouts = inner(&rollouts);
    if rollouts.len() != advantages.len() {
        let message = format!("{} advantages for {} rollouts", advantages.len(), rollouts.len());
        return Err(BatchError::new_err(message));
    }
    let layout = Layout::try_from(layout)?;
    let dict = py.detach(|| {
        let rows: Vec<Weighted<'_>> = rollouts
            .iter()
            .zip(advantages)
            .map(|(rollout, advantage)| Weighted { rollout, advantage })
            .collect();
        batch::training(&rows, &layout, oldest_version)
    });
    made(py, dict.map_err(BatchError::of)?)
}

fn inner(rollouts: &[Bound<'_, Rollout>]) -> Vec<Arc<CoreRollout>> {
    rollouts.iter().map(|rollout| rollout.get().inner.clone()).collect()
}
