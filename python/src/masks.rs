//! Loss masks, as Python sees them.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rollyard_core::batch::{DType, Tensor};
use rollyard_core::rollout::Runs;
use rollyard_core::tokens::mask::{
    MaskError as CoreMaskError, MaskRules, Masked, masked_texts, response_length,
};
use rollyard_core::tokens::template::{CivilTime, Value};
use rollyard_core::tokens::{Conversation, Masks as CoreMasks};
use std::num::NonZeroUsize;

use crate::array;
use crate::errors::MaskError;
use crate::numbers::ints;
use crate::tokenizer::Tokenizer;
use crate::values::{messages_of, now, optional, variables};

/// A tokenizer with one of the built-in mask types.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Masks {
    pub(crate) inner: CoreMasks,
}

/// What every conversation of a call is rendered with.
struct Shared {
    tools: Option<Value>,
    kwargs: Vec<(String, Value)>,
    now: CivilTime,
}

impl Shared {
    fn of(
        py: Python<'_>,
        tools: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(Self { tools: optional("tools", tools)?, kwargs: variables(kwargs)?, now: now(py)? })
    }

    fn conversation(&self, messages: &Bound<'_, PyAny>) -> PyResult<Conversation> {
        Ok(Conversation {
            name: None,
            messages: messages_of(messages)?,
            tools: self.tools.clone(),
            kwargs: self.kwargs.clone(),
            now: Some(self.now),
        })
    }
}

#[pymethods]
impl Masks {
    #[new]
    fn new(tokenizer: &Bound<'_, Tokenizer>, kind: &str) -> PyResult<Self> {
        let rule = MaskRules::default().get(kind).map_err(MaskError::of)?;
        Ok(Self { inner: CoreMasks { tokenizer: tokenizer.get().inner.clone(), rule } })
    }

    /// The built-in types.
    #[staticmethod]
    fn kinds() -> Vec<String> {
        MaskRules::default().names().map(str::to_owned).collect()
    }

    #[pyo3(signature = (messages, tools, kwargs))]
    fn mask(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<MaskedTokens> {
        let conversation = Shared::of(py, tools, kwargs)?.conversation(messages)?;
        let masked = py.detach(|| self.inner.mask(&conversation)).map_err(MaskError::of)?;
        Ok(masked.into())
    }

    /// That these tokens are those of the whole conversation, rendered at once.
    #[pyo3(signature = (messages, tools, kwargs, masked))]
    fn check_whole(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
        masked: &Bound<'_, MaskedTokens>,
    ) -> PyResult<()> {
        let conversation = Shared::of(py, tools, kwargs)?.conversation(messages)?;
        let masked = masked.get().to_core();
        py.detach(|| self.inner.check_whole(&conversation, &masked)).map_err(MaskError::of)
    }

    /// Many conversations at once, on all cores. The first that fails ends it, and is named.
    #[pyo3(signature = (conversations, tools, kwargs))]
    fn mask_all(
        &self,
        py: Python<'_>,
        conversations: Vec<Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<MaskedTokens>> {
        let shared = Shared::of(py, tools, kwargs)?;
        let conversations = conversations
            .iter()
            .map(|messages| shared.conversation(messages))
            .collect::<PyResult<Vec<_>>>()?;
        py.detach(|| {
            let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let all = self.inner.mask_all(&conversations, threads).into_iter().enumerate();
            let named =
                |nth: usize, error: CoreMaskError| MaskError::new_err(format!("conversation {nth}: {error}"));
            all.map(|(nth, masked)| masked.map(MaskedTokens::from).map_err(|error| named(nth, error)))
                .collect()
        })
    }

    /// How these tokens differ from those that the text would give.
    #[pyo3(signature = (messages, token_ids, tools, kwargs))]
    fn drift(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        token_ids: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Drift> {
        let conversation = Shared::of(py, tools, kwargs)?.conversation(messages)?;
        let sampled: Vec<u32> = ints("token_ids", token_ids)?.into_iter().map(i32::cast_unsigned).collect();
        let drift = py.detach(|| self.inner.drift(&conversation, &sampled)).map_err(MaskError::of)?;
        let place = |span: &std::ops::Range<usize>| (span.start, span.end);
        let regions = drift.0.regions.iter();
        Ok(Drift::new(regions.map(|region| (place(&region.sampled), place(&region.rendered))).collect()))
    }

    /// The text of each stretch of trained tokens.
    fn texts(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        mask: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<String>> {
        let ids: Vec<u32> = ints("token_ids", ids)?.into_iter().map(i32::cast_unsigned).collect();
        let mask = runs(mask)?;
        py.detach(|| masked_texts(self.inner.tokenizer.encoder(), &ids, &mask)).map_err(MaskError::of)
    }
}

/// From the first 1 of the mask to its end.
#[pyfunction]
pub(crate) fn response_len(mask: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(response_length(&runs(mask)?))
}

fn runs(mask: &Bound<'_, PyAny>) -> PyResult<Runs<bool>> {
    Ok(ints("loss_mask", mask)?.into_iter().map(|on| on != 0).collect())
}

/// A conversation as tokens, and which of them are trained on.
#[pyclass(frozen, module = "rollyard")]
pub(crate) struct MaskedTokens {
    ids: Vec<i32>,
    mask: Runs<bool>,
}

#[pymethods]
impl MaskedTokens {
    #[new]
    fn new(token_ids: &Bound<'_, PyAny>, loss_mask: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (ids, mask) = (ints("token_ids", token_ids)?, runs(loss_mask)?);
        if ids.len() != mask.len() {
            let message = format!("{} token ids, but {} values in the mask", ids.len(), mask.len());
            return Err(MaskError::new_err(message));
        }
        Ok(Self { ids, mask })
    }

    #[getter]
    fn token_ids<'py>(slf: Bound<'py, Self>) -> Bound<'py, PyArray1<i32>> {
        let masked: &Self = slf.get();
        array::show(slf.clone().into_any(), &masked.ids)
    }

    #[getter]
    fn loss_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut tensor = Tensor::zeros(DType::I32, &[self.ids.len()]);
        let values = tensor.values_mut::<i32>().unwrap_or_default();
        for (span, on) in self.mask.spans() {
            values.get_mut(span).unwrap_or_default().fill(i32::from(on));
        }
        array::hand_over(py, tensor)?.call_method1("view", ("int32",))
    }

    /// From the first trained token to the end.
    #[getter]
    fn response_length(&self) -> usize {
        response_length(&self.mask)
    }

    /// How many tokens are trained on.
    #[getter]
    fn trained(&self) -> usize {
        self.mask.spans().filter(|(_, on)| *on).map(|(span, _)| span.len()).sum()
    }

    /// Ids and mask as plain lists.
    fn to_lists(&self) -> (Vec<i32>, Vec<i32>) {
        (self.ids.clone(), self.mask.values().map(i32::from).collect())
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |other: &Self| self.ids == other.ids && self.mask == other.mask;
        other.cast::<Self>().is_ok_and(|other| same(other.get()))
    }

    fn __repr__(&self) -> String {
        format!("MaskedTokens({} tokens, {} trained)", self.ids.len(), self.trained())
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __getnewargs__(&self) -> (Vec<i32>, Vec<i32>) {
        self.to_lists()
    }
}

impl MaskedTokens {
    pub(crate) fn to_core(&self) -> Masked {
        let ids = self.ids.iter().map(|id| id.cast_unsigned()).collect();
        Masked { ids, mask: self.mask.clone(), messages: Vec::new() }
    }
}

impl From<Masked> for MaskedTokens {
    fn from(masked: Masked) -> Self {
        Self { ids: masked.ids.into_iter().map(u32::cast_signed).collect(), mask: masked.mask }
    }
}

/// Where a stretch begins and ends.
type Span = (usize, usize);

/// Where sampled tokens are not those that their text would give.
#[pyclass(frozen, eq, get_all, module = "rollyard")]
#[derive(PartialEq)]
pub(crate) struct Drift {
    /// Sampled tokens that the text would not give.
    sampled_tokens: usize,
    /// Tokens of the text that were not sampled.
    rendered_tokens: usize,
    /// Each place as ((start, end) in the sampled tokens, (start, end) in the text's).
    regions: Vec<(Span, Span)>,
}

#[pymethods]
impl Drift {
    #[new]
    fn new(regions: Vec<(Span, Span)>) -> Self {
        let len = |(start, end): Span| end.saturating_sub(start);
        Self {
            sampled_tokens: regions.iter().map(|(sampled, _)| len(*sampled)).sum(),
            rendered_tokens: regions.iter().map(|(_, rendered)| len(*rendered)).sum(),
            regions,
        }
    }

    fn __getnewargs__(&self) -> (Vec<(Span, Span)>,) {
        (self.regions.clone(),)
    }

    fn __bool__(&self) -> bool {
        !self.regions.is_empty()
    }

    fn __repr__(&self) -> String {
        let Self { sampled_tokens, rendered_tokens, regions } = self;
        format!(
            "Drift(sampled_tokens={sampled_tokens}, rendered_tokens={rendered_tokens}, regions={regions:?})"
        )
    }
}
