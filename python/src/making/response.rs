//! An engine's answer, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rollyard_core::rollout::Runs;
use rollyard_engine::generate::{ModelResponse as CoreResponse, Segment, StopReason};
use serde_json::value::RawValue;
use std::time::Duration;

use super::request::raw_json;
use crate::errors::RequestError;
use crate::numbers::{floats, ints};

const REASONS: [(&str, StopReason); 4] = [
    ("stop", StopReason::Stop),
    ("length", StopReason::Length),
    ("tool_calls", StopReason::ToolCalls),
    ("abort", StopReason::Abort),
];

/// What an engine answered, to the token. It never changes.
#[pyclass(frozen, module = "rollyard")]
pub(crate) struct ModelResponse {
    pub(crate) inner: CoreResponse,
}

#[pymethods]
impl ModelResponse {
    #[new]
    #[pyo3(signature = (
        *, input_tokens = None, output_tokens = None, output_logprobs = None, output_versions = None,
        stop_reason = "stop", latency = 0.0, ttft = 0.0, text = None, message = None, is_exact = true
    ))]
    #[expect(clippy::too_many_arguments, reason = "the fields of a response, by name in Python")]
    fn new(
        input_tokens: Option<&Bound<'_, PyAny>>,
        output_tokens: Option<&Bound<'_, PyAny>>,
        output_logprobs: Option<&Bound<'_, PyAny>>,
        output_versions: Option<&Bound<'_, PyAny>>,
        stop_reason: &str,
        latency: f64,
        ttft: f64,
        text: Option<String>,
        message: Option<&Bound<'_, PyAny>>,
        is_exact: bool,
    ) -> PyResult<Self> {
        let tokens = |name, given: Option<&Bound<'_, PyAny>>| match given {
            Some(given) => ints(name, given),
            None => Ok(Vec::new()),
        };
        let output_tokens = tokens("output_tokens", output_tokens)?;
        let versions = match output_versions {
            Some(versions) => ints("output_versions", versions)?,
            None => vec![-1; output_tokens.len()],
        };
        let logprobs = match output_logprobs {
            Some(logprobs) => floats("output_logprobs", logprobs)?,
            None => vec![0.0; output_tokens.len()],
        };
        for (name, len) in [("output_logprobs", logprobs.len()), ("output_versions", versions.len())] {
            if len != output_tokens.len() {
                let tokens = output_tokens.len();
                return Err(RequestError::new_err(format!("{name} has {len} values for {tokens} tokens")));
            }
        }
        let known = REASONS.into_iter().find(|(name, _)| *name == stop_reason);
        let unknown = || {
            let names = REASONS.map(|(name, _)| name).join(", ");
            RequestError::new_err(format!("stop_reason is {stop_reason:?}; there are {names}"))
        };
        let secs = |name: &str, secs: f64| {
            let bad = |_| RequestError::new_err(format!("{name} is {secs}, which is no length of time"));
            Duration::try_from_secs_f64(secs).map_err(bad)
        };
        let runs: Runs<i32> = versions.into_iter().collect();
        Ok(Self {
            inner: CoreResponse {
                input_tokens: tokens("input_tokens", input_tokens)?,
                output_tokens,
                output_logprobs: logprobs,
                segments: runs
                    .spans()
                    .map(|(span, version)| Segment { tokens: span.len(), version })
                    .collect(),
                text,
                message: message.map(raw_json).transpose()?,
                stop_reason: known.ok_or_else(unknown)?.1,
                latency: secs("latency", latency)?,
                ttft: secs("ttft", ttft)?,
                is_exact,
            },
        })
    }

    /// The prompt's tokens; empty where the engine only speaks text.
    #[getter]
    fn input_tokens(&self) -> Vec<i32> {
        self.inner.input_tokens.clone()
    }

    /// Every token that was sampled, over all interruptions.
    #[getter]
    fn output_tokens(&self) -> Vec<i32> {
        self.inner.output_tokens.clone()
    }

    /// One for each token of the output.
    #[getter]
    fn output_logprobs(&self) -> Vec<f32> {
        self.inner.output_logprobs.clone()
    }

    /// The weights that each token of the output was sampled with; -1 if nobody knows.
    #[getter]
    fn output_versions(&self) -> Vec<i32> {
        self.inner.output_versions().values().collect()
    }

    /// The same as pairs of how many tokens and their version, in order.
    #[getter]
    fn segments(&self) -> Vec<(usize, i32)> {
        self.inner.segments.iter().map(|segment| (segment.tokens, segment.version)).collect()
    }

    /// "stop", "length", "tool_calls" or "abort".
    #[getter]
    fn stop_reason(&self) -> &'static str {
        let reason = self.inner.stop_reason;
        REASONS.into_iter().find(|(_, known)| *known == reason).map_or("stop", |(name, _)| name)
    }

    /// Seconds until the answer was complete.
    #[getter]
    fn latency(&self) -> f64 {
        self.inner.latency.as_secs_f64()
    }

    /// Seconds until the first token, or until the answer where the engine does not stream.
    #[getter]
    fn ttft(&self) -> f64 {
        self.inner.ttft.as_secs_f64()
    }

    /// As the engine wrote it, where it did.
    #[getter]
    fn text(&self) -> Option<&str> {
        self.inner.text.as_deref()
    }

    /// The assistant's message as a chat engine wrote it.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let parse = |raw: &RawValue| py.import("json")?.call_method1("loads", (raw.get(),));
        self.inner.message.as_deref().map(parse).transpose()
    }

    /// These tokens are the ones that were sampled.
    #[getter]
    fn is_exact(&self) -> bool {
        self.inner.is_exact
    }

    #[getter]
    fn input_len(&self) -> usize {
        self.inner.input_tokens.len()
    }

    #[getter]
    fn output_len(&self) -> usize {
        self.inner.output_tokens.len()
    }

    fn __repr__(&self) -> String {
        let (input, output) = (self.input_len(), self.output_len());
        let segments = self.inner.segments.len();
        let reason = self.stop_reason();
        format!("ModelResponse({input} + {output} tokens in {segments} segments, stop_reason={reason:?})")
    }

    fn __getnewargs_ex__<'py>(slf: Bound<'py, Self>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let fields = PyDict::new(slf.py());
        for name in FIELDS {
            fields.set_item(name, slf.getattr(name)?)?;
        }
        Ok((PyTuple::empty(slf.py()), fields))
    }
}

/// What a response is made of again.
const FIELDS: [&str; 10] = [
    "input_tokens",
    "output_tokens",
    "output_logprobs",
    "output_versions",
    "stop_reason",
    "latency",
    "ttft",
    "text",
    "message",
    "is_exact",
];

impl From<CoreResponse> for ModelResponse {
    fn from(inner: CoreResponse) -> Self {
        Self { inner }
    }
}
