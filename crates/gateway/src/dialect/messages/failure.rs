//! Says no as Anthropic does.

use serde::Serialize;
use std::borrow::Cow;

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
        Self { r#type: "error", error: Error { r#type, message } }
    }
}
