//! Why a request is not answered. Each dialect has its own way of saying it.

use rollyard_engine::generate::EngineError;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: Kind,
    /// Names the field and its value.
    pub message: String,
    /// The field, as the caller wrote it.
    pub field: Option<String>,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 400: not the dialect's, or not possible.
    BadRequest,
    /// 400: the prompt is longer than the model can take.
    ContextLength,
    /// 401: no key, or one that is not known.
    Unauthorized,
    /// 403: the key is for something else, or its session is over.
    Forbidden,
    /// 404: no such model, answer or path.
    NotFound,
    /// 409: the session is over.
    Conflict,
    /// 413: the body is too large.
    TooLarge,
    /// 429: there is no room now.
    NoCapacity,
    /// 500: ours.
    Internal,
    /// 502: the engine said something that cannot be used.
    Engine,
    /// 503: the engine is away.
    Unavailable,
}

impl Kind {
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest | Self::ContextLength => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::NoCapacity => 429,
            Self::Internal => 500,
            Self::Engine => 502,
            Self::Unavailable => 503,
        }
    }
}

impl Refusal {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), field: None, retry_after: None }
    }

    /// A field of the request is wrong; `message` has its value.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(Kind::BadRequest, message) }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        let kind = match &error {
            EngineError::BadRequest(_) => Kind::BadRequest,
            EngineError::Closed => Kind::Unavailable,
            error if error.may_pass() => Kind::Unavailable,
            _ => Kind::Engine,
        };
        Self::new(kind, error.to_string())
    }
}
