//! Answers as hyper sends them.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::io;

/// `None` closes the connection.
pub(crate) type Answer = Option<Response<Body>>;

/// At once, or event by event; an error in between closes the connection.
pub(crate) type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>>;

pub(crate) fn events(events: BoxStream<'static, io::Result<Frame<Bytes>>>) -> Answer {
    let mut answer = Response::new(Either::Right(StreamBody::new(events)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    Some(answer)
}

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
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Some(answer)
}
