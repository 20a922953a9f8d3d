//! Rollouts and their metadata, as Python sees them.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rollyard_core::rollout::{Draft, METADATA_VERSION, Metadata, Rollout as CoreRollout, Runs};
use std::sync::Arc;

use crate::array;
use crate::errors::RolloutError;
use crate::items::{self, Item, ItemMasks};
use crate::numbers::{add_ints, floats, ints};

/// Where a rollout came from: attached by the worker after the environment is done.
#[pyclass(frozen, eq, get_all, module = "rollyard", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct RolloutMetadata {
    /// `{hostname}_{pid}`.
    worker_id: String,
    /// Seconds since 1970.
    timestamp: f64,
    /// The trainer's step whose weights sampled it; -1 if nobody said.
    weight_step: i64,
    /// Of this schema.
    version: u32,
}

#[pymethods]
impl RolloutMetadata {
    #[new]
    #[pyo3(
        signature = (worker_id = String::new(), timestamp = 0.0, weight_step = -1, version = METADATA_VERSION),
        text_signature = "(worker_id='', timestamp=0.0, weight_step=-1, version=1)"
    )]
    fn new(worker_id: String, timestamp: f64, weight_step: i64, version: u32) -> Self {
        Self { worker_id, timestamp, weight_step, version }
    }

    fn __repr__(&self) -> String {
        let Self { worker_id, timestamp, weight_step, version } = self;
        format!(
            "RolloutMetadata(worker_id={worker_id:?}, timestamp={timestamp:?}, weight_step={weight_step}, \
             version={version})"
        )
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        // 0.0 and -0.0 are equal.
        (&self.worker_id, (self.timestamp + 0.0).to_bits(), self.weight_step, self.version).hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs__(&self) -> (String, f64, i64, u32) {
        (self.worker_id.clone(), self.timestamp, self.weight_step, self.version)
    }
}

impl From<&Metadata> for RolloutMetadata {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { worker_id, timestamp, weight_step, version } = metadata.clone();
        Self { worker_id, timestamp, weight_step, version }
    }
}

impl From<RolloutMetadata> for Metadata {
    fn from(metadata: RolloutMetadata) -> Self {
        let RolloutMetadata { worker_id, timestamp, weight_step, version } = metadata;
        Self { worker_id, timestamp, weight_step, version }
    }
}

/// One rollout to the token. It never changes; its arrays are views of memory that Rust holds.
#[pyclass(frozen, module = "rollyard")]
pub(crate) struct Rollout {
    pub(crate) inner: Arc<CoreRollout>,
}

#[pymethods]
impl Rollout {
    #[new]
    #[pyo3(signature = (
        env_name, env_example_id, prompt_tokens, response_tokens, response_logprobs = None,
        token_rewards = None, episode_reward = 0.0, temperature = None, top_k = None, is_truncated = false,
        metadata = None, correctness_reward = None, *, loss_mask = None, versions = None, exact = true
    ))]
    #[expect(clippy::too_many_arguments, reason = "the fields of a rollout, by name in Python")]
    fn new(
        py: Python<'_>,
        env_name: String,
        env_example_id: String,
        prompt_tokens: &Bound<'_, PyAny>,
        response_tokens: &Bound<'_, PyAny>,
        response_logprobs: Option<&Bound<'_, PyAny>>,
        token_rewards: Option<&Bound<'_, PyAny>>,
        episode_reward: f64,
        temperature: Option<f32>,
        top_k: Option<i32>,
        is_truncated: bool,
        metadata: Option<RolloutMetadata>,
        correctness_reward: Option<f64>,
        loss_mask: Option<&Bound<'_, PyAny>>,
        versions: Option<&Bound<'_, PyAny>>,
        exact: bool,
    ) -> PyResult<Self> {
        let mut tokens = ints("prompt_tokens", prompt_tokens)?;
        let prompt_len = tokens.len();
        add_ints("response_tokens", response_tokens, &mut tokens)?;
        let mask = loss_mask.map(|mask| ints("loss_mask", mask)).transpose()?;
        let draft = Draft {
            env_name,
            env_example_id,
            tokens,
            prompt_len,
            logprobs: response_logprobs.map(|values| floats("response_logprobs", values)).transpose()?,
            sampled: mask.map(|mask| mask.into_iter().map(|on| on != 0).collect()),
            versions: versions.map(|values| ints("versions", values)).transpose()?,
            token_rewards: token_rewards.map(|values| floats("token_rewards", values)).transpose()?,
            episode_reward,
            metadata: metadata.map(Metadata::from).unwrap_or_default(),
            temperature,
            top_k,
            is_truncated,
            correctness_reward,
            retokenised: !exact,
        };
        let rollout = py.detach(|| CoreRollout::try_from(draft)).map_err(RolloutError::of)?;
        Ok(rollout.into())
    }

    /// The rollout of an item as the yard keeps it: JSON text, bytes, or a dict.
    #[staticmethod]
    #[pyo3(signature = (item, *, masks = None))]
    fn from_item(item: &Bound<'_, PyAny>, masks: Option<ItemMasks<'_>>) -> PyResult<Self> {
        Ok(items::read(item.py(), &Item::of(item)?, masks.as_ref())?.into())
    }

    #[getter]
    fn env_name(&self) -> &str {
        &self.inner.env_name
    }

    #[getter]
    fn env_example_id(&self) -> &str {
        &self.inner.env_example_id
    }

    /// The prompt and the response.
    #[getter]
    fn tokens<'py>(slf: Bound<'py, Self>) -> Bound<'py, PyArray1<i32>> {
        let inner = slf.get().inner.clone();
        array::show(slf.into_any(), inner.tokens())
    }

    #[getter]
    fn prompt_tokens<'py>(slf: Bound<'py, Self>) -> Bound<'py, PyArray1<i32>> {
        let inner = slf.get().inner.clone();
        array::show(slf.into_any(), inner.prompt_tokens())
    }

    #[getter]
    fn response_tokens<'py>(slf: Bound<'py, Self>) -> Bound<'py, PyArray1<i32>> {
        let inner = slf.get().inner.clone();
        array::show(slf.into_any(), inner.response_tokens())
    }

    /// One for each token of the response; `None` if the engine gave none.
    #[getter]
    fn response_logprobs<'py>(slf: Bound<'py, Self>) -> Option<Bound<'py, PyArray1<f32>>> {
        let inner = slf.get().inner.clone();
        inner.response_logprobs().map(|logprobs| array::show(slf.into_any(), logprobs))
    }

    /// The reward of each token of the response, written out.
    #[getter]
    fn token_rewards<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_iter(py, self.inner.token_rewards().values())
    }

    /// 1 on each token of the response that was sampled, written out.
    #[getter]
    fn loss_mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.inner.sampled().values().map(i32::from))
    }

    /// The weights each token of the response was sampled with, -1 where it was given, written out.
    #[getter]
    fn versions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.inner.versions().values())
    }

    /// The versions as pairs of a version and how many tokens it sampled.
    #[getter]
    fn version_runs(&self) -> Vec<(i32, usize)> {
        pairs(self.inner.versions())
    }

    #[getter]
    fn episode_reward(&self) -> f64 {
        self.inner.episode_reward
    }

    #[getter]
    fn temperature(&self) -> Option<f32> {
        self.inner.temperature
    }

    #[getter]
    fn top_k(&self) -> Option<i32> {
        self.inner.top_k
    }

    #[getter]
    fn is_truncated(&self) -> bool {
        self.inner.is_truncated
    }

    #[getter]
    fn correctness_reward(&self) -> Option<f64> {
        self.inner.correctness_reward
    }

    #[getter]
    fn metadata(&self) -> RolloutMetadata {
        RolloutMetadata::from(&self.inner.metadata)
    }

    /// Whether the tokens are the ones that were sampled, not made again from text.
    #[getter]
    fn exact(&self) -> bool {
        self.inner.is_exact()
    }

    /// What was given and what was sampled, turn by turn, as (start, end) pairs in `tokens`.
    #[getter]
    fn turns(&self) -> Vec<((usize, usize), (usize, usize))> {
        let place = |span: std::ops::Range<usize>| (span.start, span.end);
        self.inner.turns().into_iter().map(|turn| (place(turn.given), place(turn.sampled))).collect()
    }

    /// Bytes it takes in memory.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.inner.size_bytes()
    }

    /// The same rollout with other metadata; the original stays as it is.
    fn with_metadata(&self, metadata: RolloutMetadata) -> PyResult<Self> {
        Ok(self.inner.with_metadata(metadata.into()).map_err(RolloutError::of)?.into())
    }

    /// The same rollout with the metadata of its batch, if it has none of its own.
    fn fill_metadata<'py>(slf: Bound<'py, Self>, batch: RolloutMetadata) -> PyResult<Bound<'py, Self>> {
        if !slf.get().inner.metadata.is_missing() {
            return Ok(slf);
        }
        let mut rollout = CoreRollout::clone(&slf.get().inner);
        rollout.fill_metadata(&batch.into()).map_err(RolloutError::of)?;
        Bound::new(slf.py(), Self::from(rollout))
    }

    fn __len__(&self) -> usize {
        self.inner.tokens().len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner == other.get().inner)
    }

    fn __repr__(&self) -> String {
        let rollout = &self.inner;
        format!(
            "Rollout({:?}, {:?}, {} prompt + {} response tokens, episode_reward={:?}, weight_step={})",
            rollout.env_name,
            rollout.env_example_id,
            rollout.prompt_len(),
            rollout.response_len(),
            rollout.episode_reward,
            rollout.metadata.weight_step,
        )
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __getnewargs_ex__<'py>(slf: Bound<'py, Self>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let py = slf.py();
        let fields = PyDict::new(py);
        for name in FIELDS {
            fields.set_item(name, slf.getattr(name)?)?;
        }
        Ok((PyTuple::empty(py), fields))
    }
}

/// So many of the fields every rollout has, whoever made it: to leave out a reward would be to train on zeros.
pub(crate) const NEEDED: usize = 7;

/// What a rollout is made of again.
pub(crate) const FIELDS: [&str; 15] = [
    "env_name",
    "env_example_id",
    "prompt_tokens",
    "response_tokens",
    "response_logprobs",
    "token_rewards",
    "episode_reward",
    "temperature",
    "top_k",
    "is_truncated",
    "metadata",
    "correctness_reward",
    "loss_mask",
    "versions",
    "exact",
];

impl From<CoreRollout> for Rollout {
    fn from(rollout: CoreRollout) -> Self {
        Self { inner: Arc::new(rollout) }
    }
}

fn pairs<T: Copy + PartialEq>(runs: &Runs<T>) -> Vec<(T, usize)> {
    runs.spans().map(|(span, value)| (value, span.len())).collect()
}
