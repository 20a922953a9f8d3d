//! A body as JSON; what does not fit is named with its field.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::refusal::{Refusal, shown};

/// As handlers are given it.
pub(super) type Body = Result<Bytes, BytesRejection>;

pub(super) fn read<T: DeserializeOwned>(body: Body) -> Result<T, Refusal> {
    let bytes = body.map_err(|rejection| {
        let code =
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE { "too_large" } else { "unreadable" };
        Refusal::new(rejection.status(), code, format!("the body cannot be read: {}", rejection.body_text()))
    })?;
    parse(&bytes)
}

/// As [`read`], where no body is an empty object.
pub(super) fn read_or_default<T: DeserializeOwned>(body: Body) -> Result<T, Refusal> {
    match body {
        Ok(bytes) if bytes.trim_ascii().is_empty() => parse(b"{}"),
        body => read(body),
    }
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let not_json = |reason: String| Refusal::new(StatusCode::BAD_REQUEST, "invalid_json", reason);
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        let text = shown(String::from_utf8_lossy(bytes.get(..400.min(bytes.len())).unwrap_or_default()));
        return Err(not_json(format!("the body must be a JSON object, not {text:?}")));
    }
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let path = error.path().to_string();
        match (error.inner().classify(), path.as_str()) {
            (Category::Data, ".") => not_json(format!("the body does not fit: {}", error.inner())),
            (Category::Data, path) => Refusal::bad(path, format!("field {path:?}: {}", error.inner())),
            _ => not_json(format!("the body is not JSON: {}", error.inner())),
        }
    })?;
    from.end().map_err(|error| not_json(format!("the body is more than one JSON object: {error}")))?;
    Ok(read)
}

/// A text, or a list of texts.
pub(super) fn texts(field: &str, raw: Option<&RawValue>) -> Result<Vec<String>, Refusal> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let read = match raw.get().trim_start().starts_with('"') {
        true => serde_json::from_str(raw.get()).map(|text| vec![text]),
        false => serde_json::from_str(raw.get()),
    };
    read.map_err(|_| Refusal::wrong(field, shown(raw), "a text or a list of texts"))
}

/// Refuses what a client asks for and would not get. A field at its neutral value asks for nothing.
pub(super) fn refuse_unless_neutral(
    fields: &[(&'static str, &Option<Value>, &[Value])],
) -> Result<(), Refusal> {
    for (field, value, neutral) in fields {
        let Some(value) = value.as_ref().filter(|value| !is_neutral(value, neutral)) else { continue };
        let message =
            format!("field {field:?} is {}, which this server cannot do; leave it out", shown(value));
        return Err(Refusal { code: "unsupported", ..Refusal::bad(field, message) });
    }
    Ok(())
}

fn is_neutral(value: &Value, neutral: &[Value]) -> bool {
    let same = |one: &Value| match (one.as_f64(), value.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == value,
    };
    neutral.iter().any(same)
}
