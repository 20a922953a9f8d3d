//! Items as the yard keeps them become rollouts, one or a whole lease of them.
//!
//! A lease arrives as one piece of JSON. It is cut into its items here, which stay bytes: tokens are read from
//! them without the GIL, and Python decodes an item only if somebody looks at it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;
use rollyard_core::rollout::{Metadata, Rollout as CoreRollout};
use rollyard_core::tokens::template::CivilTime;
use rollyard_core::tokens::{ItemTokensError, Masks as CoreMasks, in_order, retokenised};
use rollyard_core::wire::reference;
use rollyard_core::wire::rollout::{self as wire, TokensError};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::num::NonZeroUsize;

use crate::errors::RolloutError;
use crate::masks::{MaskedTokens, Masks};
use crate::rollout::Rollout;
use crate::values::now;

/// The JSON of one item.
pub(crate) enum Item {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Item {
    /// Text and bytes as they are; a dict as a client would write it.
    pub(crate) fn of(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = item.extract() {
            return Ok(Self::Text(text));
        }
        if let Ok(bytes) = item.extract() {
            return Ok(Self::Bytes(bytes));
        }
        let encode = item.py().import("rollyard.client.encode")?;
        Ok(Self::Bytes(encode.call_method1("item_json", (item,))?.extract()?))
    }

    fn json(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// What to call it in an error.
    fn name(&self, nth: usize) -> String {
        let item: Option<serde_json::Value> = serde_json::from_slice(self.json()).ok();
        let uid = item.as_ref().and_then(|item| item.get("uid"));
        uid.map_or_else(|| format!("rollout {nth}"), |uid| format!("rollout {nth} ({uid})"))
    }
}

/// What makes tokens for an item that carries none.
#[derive(FromPyObject)]
pub(crate) enum ItemMasks<'py> {
    Native(Bound<'py, Masks>),
    /// Takes the item's JSON and gives [`MaskedTokens`].
    Python(Bound<'py, PyAny>),
}

impl ItemMasks<'_> {
    fn native(&self) -> Option<&CoreMasks> {
        match self {
            Self::Native(masks) => Some(&masks.get().inner),
            Self::Python(_) => None,
        }
    }
}

/// The rollout of one item.
pub(crate) fn read(py: Python<'_>, item: &Item, masks: Option<&ItemMasks<'_>>) -> PyResult<CoreRollout> {
    let native = masks.and_then(ItemMasks::native);
    let now = now(py)?;
    let rollout = py.detach(|| decode(item, native, now));
    made(py, item, rollout, masks)?.map_err(RolloutError::of)
}

/// The rollouts of many items, on all cores; the first that cannot be read is named. `versions` are the weights
/// of items that do not say theirs.
#[pyfunction]
pub(crate) fn rollouts_of(
    py: Python<'_>,
    items: Vec<Bound<'_, PyAny>>,
    versions: Vec<Option<i64>>,
    masks: Option<ItemMasks<'_>>,
) -> PyResult<Vec<Rollout>> {
    let items = items.iter().map(Item::of).collect::<PyResult<Vec<_>>>()?;
    let native = masks.as_ref().and_then(ItemMasks::native);
    let now = now(py)?;
    let rollouts = py.detach(|| {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        in_order(&items, threads, |item| decode(item, native, now))
    });
    let versions = versions.into_iter().chain(std::iter::repeat(None));
    let mut read = Vec::with_capacity(items.len());
    for (nth, ((item, rollout), version)) in items.iter().zip(rollouts).zip(versions).enumerate() {
        let named = |error: String| RolloutError::new_err(format!("{}: {error}", item.name(nth)));
        let mut rollout =
            made(py, item, rollout, masks.as_ref())?.map_err(|error| named(error.to_string()))?;
        if let Some(weight_step) = version
            && rollout.metadata.weight_step < 0
        {
            let metadata = Metadata { weight_step, ..rollout.metadata.clone() };
            rollout.set_metadata(metadata).map_err(|error| named(error.to_string()))?;
        }
        read.push(rollout.into());
    }
    Ok(read)
}

fn decode(item: &Item, masks: Option<&CoreMasks>, now: CivilTime) -> Result<CoreRollout, ItemTokensError> {
    match masks {
        Some(masks) => masks.rollout(item.json(), now),
        None => Ok(wire::decode(item.json())?),
    }
}

/// Asks Python for the tokens of an item that carries none, where it offered to make them.
fn made(
    py: Python<'_>,
    item: &Item,
    rollout: Result<CoreRollout, ItemTokensError>,
    masks: Option<&ItemMasks<'_>>,
) -> PyResult<Result<CoreRollout, ItemTokensError>> {
    let (Err(ItemTokensError::Tokens(TokensError::Absent)), Some(ItemMasks::Python(masks))) =
        (&rollout, masks)
    else {
        return Ok(rollout);
    };
    let masked = masks.call1((PyBytes::new(py, item.json()),))?;
    let masked = masked.cast::<MaskedTokens>()?.get().to_core();
    Ok(wire::facts(item.json())
        .map_err(ItemTokensError::from)
        .and_then(|facts| Ok(retokenised(facts, &masked)?)))
}

#[derive(Deserialize)]
struct WireLease<'a> {
    lease: Option<u64>,
    until_ms: Option<u64>,
    #[serde(borrow)]
    meta_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    groups: Vec<WireGroup<'a>>,
}

#[derive(Deserialize)]
struct WireGroup<'a> {
    group: u64,
    instance_id: String,
    round: u64,
    versions: Option<(i64, i64)>,
    #[serde(borrow)]
    rollouts: Vec<&'a RawValue>,
}

/// A rollout as an item that the yard keeps: under this uid, in a group of this size.
#[pyfunction]
pub(crate) fn item_of<'py>(
    py: Python<'py>,
    rollout: &Bound<'py, Rollout>,
    uid: &str,
    group_size: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let rollout = rollout.get().inner.clone();
    let item = py.detach(|| wire::encode(&rollout, uid, Some(group_size)));
    Ok(PyBytes::new(py, &item.map_err(RolloutError::of)?))
}

/// What stands for an item whose bytes are stored elsewhere; `None` if nothing can.
#[pyfunction]
pub(crate) fn reference_of<'py>(
    py: Python<'py>,
    item: PyBackedBytes,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let reference = py.detach(|| reference::of_rollout(&item, 0));
    let reference = reference.map_err(RolloutError::of)?;
    Ok(reference.map(|(reference, _)| PyBytes::new(py, &reference)))
}

#[derive(Deserialize)]
struct WireSample<'a> {
    lease: Option<u64>,
    #[serde(borrow, default)]
    rollouts: Vec<&'a RawValue>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

/// Number of the lease, what is said of the batch, and its items.
type Sample<'py> = (u64, Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>);

/// The parts of a batch that was drawn; `None` if there was not enough.
#[pyfunction]
pub(crate) fn split_sample(py: Python<'_>, content: PyBackedBytes) -> PyResult<Option<Sample<'_>>> {
    let wire: Result<WireSample<'_>, _> = py.detach(|| serde_json::from_slice(&content));
    let wire = wire.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let Some(lease) = wire.lease else { return Ok(None) };
    let items = wire.rollouts.into_iter().map(|raw| PyBytes::new(py, raw.get().as_bytes())).collect();
    let about = serde_json::Value::Object(wire.rest).to_string();
    Ok(Some((lease, PyBytes::new(py, about.as_bytes()), items)))
}

/// Number, end, statistics and groups of a lease.
type Lease<'py> = (u64, u64, Bound<'py, PyBytes>, Vec<Group<'py>>);

/// Number, instance, round, versions and items of a group.
type Group<'py> = (u64, String, u64, Option<(i64, i64)>, Vec<Bound<'py, PyBytes>>);

/// The parts of a lease as the server answers it; `None` if it granted none.
#[pyfunction]
pub(crate) fn split_lease(py: Python<'_>, content: PyBackedBytes) -> PyResult<Option<Lease<'_>>> {
    let wire: Result<WireLease<'_>, _> = py.detach(|| serde_json::from_slice(&content));
    let wire = wire.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let Some(lease) = wire.lease else { return Ok(None) };
    let bytes = |raw: &RawValue| PyBytes::new(py, raw.get().as_bytes());
    let groups = wire.groups.into_iter().map(|group| {
        let items = group.rollouts.into_iter().map(bytes).collect();
        (group.group, group.instance_id, group.round, group.versions, items)
    });
    let meta = wire.meta_info.map_or_else(|| PyBytes::new(py, b"null"), bytes);
    Ok(Some((lease, wire.until_ms.unwrap_or_default(), meta, groups.collect())))
}
