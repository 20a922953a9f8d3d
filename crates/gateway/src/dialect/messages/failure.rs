//! Says no as Anthropic does.

use serde::Serialize;
use std::borrow::Cow;

use super::ask::PREVIOUS;
use crate::refusal::{Kind, Refusal};

#[derive(Serialize)]
pub(in super::super) struct Failure<'a> {
    r#type: &'static str,
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    r#type: &'static str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Serialize)]
struct Details {
    error_code: &'static str,
}

impl<'a> From<&'a Refusal> for Failure<'a> {
    fn from(refusal: &'a Refusal) -> Self {
        let r#type = match refusal.kind {
            Kind::BadRequest | Kind::ContextLength | Kind::Conflict => "invalid_request_error",
            Kind::Unauthorized => "authentication_error",
            Kind::Forbidden => "permission_error",
            Kind::NotFound => "not_found_error",
            Kind::TooLarge => "request_too_large",
            Kind::NoCapacity => "rate_limit_error",
            Kind::Internal | Kind::Engine => "api_error",
            Kind::Unavailable => "overloaded_error",
        };
        let message = match refusal.kind {
            // There is no code for it; agents that shorten their prompts look for these words.
            Kind::ContextLength => Cow::Owned(format!("prompt is too long: {}", refusal.message)),
            _ => Cow::Borrowed(refusal.message.as_str()),
        };
        // By this code clients know that the whole conversation is wanted.
        let lost = refusal.kind == Kind::NotFound && refusal.field.as_deref() == Some(PREVIOUS);
        let details = lost.then_some(Details { error_code: "thread_not_found" });
        Self { r#type: "error", error: Error { r#type, message, details } }
    }
}
