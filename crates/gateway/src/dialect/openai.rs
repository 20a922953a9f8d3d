//! What chat completions, completions and responses have in common.

use serde::Serialize;

use crate::refusal::{Kind, Refusal};
use crate::tell::{Begun, Ended, Spelled};

/// What every completion and every chunk of one is made of.
#[derive(Serialize)]
pub(super) struct Envelope<'a, C: Serialize> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: &'a [C],
    /// In a stream that ends with the usage, every other chunk has it as `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Option<Usage>>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: Cached,
    completion_tokens_details: Reasoned,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cached {
    pub(super) cached_tokens: usize,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Reasoned {
    pub(super) reasoning_tokens: usize,
}

/// What the choices took until now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) completion: usize,
    pub(super) reasoning: usize,
}

impl Taken {
    pub(super) fn add(&mut self, ended: &Ended) {
        self.completion += ended.completion_tokens;
        self.reasoning += ended.reasoning_tokens;
    }

    pub(super) fn of<'a>(all: impl IntoIterator<Item = &'a Ended>) -> Self {
        let mut taken = Self::default();
        all.into_iter().for_each(|ended| taken.add(ended));
        taken
    }

    pub(super) fn usage(self, begun: &Begun) -> Usage {
        Usage {
            prompt_tokens: begun.prompt_tokens,
            completion_tokens: self.completion,
            total_tokens: begun.prompt_tokens + self.completion,
            prompt_tokens_details: Cached { cached_tokens: begun.cached_tokens },
            completion_tokens_details: Reasoned { reasoning_tokens: self.reasoning },
        }
    }
}

/// A sampled token with its log-prob; what else could have been sampled is not known.
#[derive(Serialize)]
pub(super) struct TokenLogprob<'a> {
    token: &'a str,
    bytes: &'a [u8],
    logprob: f32,
    top_logprobs: [(); 0],
}

impl<'a> From<&'a Spelled> for TokenLogprob<'a> {
    fn from(token: &'a Spelled) -> Self {
        let (bytes, logprob) = (token.text.as_bytes(), logprob(token));
        Self { token: &token.text, bytes, logprob, top_logprobs: [] }
    }
}

/// JSON has no infinity; OpenAI writes -9999 for what cannot be.
pub(super) fn logprob(token: &Spelled) -> f32 {
    if token.logprob.is_finite() { token.logprob } else { -9999.0 }
}

#[derive(Serialize)]
pub(super) struct Failure<'a> {
    pub(super) error: Error<'a>,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Error<'a> {
    pub(super) message: &'a str,
    r#type: &'static str,
    pub(super) param: Option<&'a str>,
    pub(super) code: Option<&'static str>,
}

impl<'a> From<&'a Refusal> for Failure<'a> {
    fn from(refusal: &'a Refusal) -> Self {
        let param = refusal.field.as_deref();
        let (r#type, code) = match refusal.kind {
            Kind::BadRequest => ("invalid_request_error", None),
            Kind::ContextLength => ("invalid_request_error", Some("context_length_exceeded")),
            Kind::Unauthorized => ("invalid_request_error", Some("invalid_api_key")),
            Kind::Forbidden => ("invalid_request_error", Some("permission_denied")),
            Kind::NotFound => match param {
                Some("model") => ("invalid_request_error", Some("model_not_found")),
                Some("previous_response_id") => {
                    ("invalid_request_error", Some("previous_response_not_found"))
                }
                _ => ("invalid_request_error", Some("not_found")),
            },
            Kind::Conflict => ("invalid_request_error", Some("conflict")),
            Kind::TooLarge => ("invalid_request_error", Some("request_too_large")),
            Kind::NoCapacity => ("rate_limit_error", Some("rate_limit_exceeded")),
            Kind::Internal | Kind::Engine => ("server_error", Some("server_error")),
            Kind::Unavailable => ("server_error", Some("service_unavailable")),
        };
        Self { error: Error { message: &refusal.message, r#type, param, code } }
    }
}
