//! Why a request is not answered, before a dialect puts it into its own form.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::fmt::Display;
use std::marker::PhantomData;

use crate::engine::AskError;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// A short name to branch on.
    pub(super) code: &'static str,
    /// The field that is to blame, where one is.
    pub(super) field: Option<String>,
    /// With the field and the value.
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, field: None, message: message.into() }
    }

    /// A field that is not understood.
    pub(super) fn bad(field: &str, message: impl Into<String>) -> Self {
        let refusal = Self::new(StatusCode::BAD_REQUEST, "invalid_value", message);
        Self { field: Some(field.to_owned()), ..refusal }
    }

    /// A field with a value that it cannot have.
    pub(super) fn wrong(field: &str, value: impl Display, want: &str) -> Self {
        Self::bad(field, format!("field {field:?} is {value}, but must be {want}"))
    }

    pub(super) fn missing(field: &str, want: &str) -> Self {
        Self::bad(field, format!("field {field:?} is missing; give {want}"))
    }
}

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Bad { field, message } => Self::bad(field, message),
            AskError::Failed(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "model_failed", error.to_string())
            }
            AskError::Closed => Self::new(StatusCode::SERVICE_UNAVAILABLE, "closed", error.to_string()),
        }
    }
}

/// How a dialect says no.
pub(super) trait Form {
    fn body(refusal: &Refusal) -> Value;
}

/// A refusal as an answer in this form.
#[derive(Debug)]
pub(super) struct Failure<F> {
    refusal: Refusal,
    form: PhantomData<F>,
}

impl<F, E: Into<Refusal>> From<E> for Failure<F> {
    fn from(error: E) -> Self {
        Self { refusal: error.into(), form: PhantomData }
    }
}

impl<F: Form> IntoResponse for Failure<F> {
    fn into_response(self) -> Response {
        (self.refusal.status, Json(F::body(&self.refusal))).into_response()
    }
}

/// A value as messages show it: not all of a long one.
pub(super) fn shown(value: impl Display) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
