//! Answers as hyper sends them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// `None` closes the connection.
pub(crate) type Answer = Option<Response<Full<Bytes>>>;

pub(crate) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => with_status(StatusCode::OK, body.into()),
        Err(error) => with_status(StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into()),
    }
}

pub(crate) fn raw(body: String) -> Answer {
    with_status(StatusCode::OK, body.into())
}

pub(crate) fn bad_request(reason: &str) -> Answer {
    with_status(StatusCode::BAD_REQUEST, error_body(reason))
}

pub(crate) fn status(status: u16, retry_after: Option<&str>) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = with_status(status, error_body("on command"))?;
    if let Some(value) = retry_after.and_then(|value| HeaderValue::from_str(value).ok()) {
        answer.headers_mut().insert(RETRY_AFTER, value);
    }
    Some(answer)
}

pub(crate) fn empty() -> Answer {
    with_status(StatusCode::OK, Bytes::new())
}

pub(crate) fn not_found() -> Answer {
    with_status(StatusCode::NOT_FOUND, error_body("Not Found"))
}

fn error_body(reason: &str) -> Bytes {
    serde_json::json!({"error": {"message": reason}}).to_string().into()
}

fn with_status(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Some(answer)
}
