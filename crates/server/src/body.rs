//! Takes a request's body in, within limits.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

use crate::App;
use crate::error::ApiError;

/// How much of a refused body is read and thrown away, so that its sender sees the refusal and not a reset.
const DISCARDED_BYTES_MAX: usize = 2 << 30;
const DISCARDED_WITHIN: Duration = Duration::from_secs(10);

/// The bytes of a body, as they came.
pub(crate) struct Raw(pub(crate) Bytes);

/// A JSON object; an empty body is an empty one.
pub(crate) struct Object(pub(crate) Map<String, Value>);

/// A JSON object of a known shape. An error names the field.
pub(crate) struct Fields<T>(pub(crate) T);

/// The lines of a body, one after the other, without their ends.
#[derive(Debug)]
pub(crate) struct Lines {
    body: Body,
    tail: BytesMut,
    line_bytes_max: usize,
    is_read: bool,
}

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum Unfinished {
    Broken(axum::Error),
    TooLong,
}

impl Lines {
    pub(crate) fn new(body: Body, line_bytes_max: usize) -> Self {
        Self { body, tail: BytesMut::new(), line_bytes_max, is_read: false }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Unfinished> {
        let mut searched = 0;
        loop {
            let fresh = self.tail.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', fresh) {
                let line = self.tail.split_to(searched + end + 1).freeze();
                return Ok(Some(line.slice(..searched + end)));
            }
            if self.tail.len() > self.line_bytes_max {
                return Err(Unfinished::TooLong);
            }
            if self.is_read {
                let last = std::mem::take(&mut self.tail).freeze();
                return Ok(Some(last).filter(|last| !last.is_empty()));
            }
            searched = self.tail.len();
            match self.body.frame().await {
                None => self.is_read = true,
                Some(Err(error)) => return Err(Unfinished::Broken(error)),
                Some(Ok(frame)) => {
                    frame.into_data().iter().for_each(|data| self.tail.extend_from_slice(data))
                }
            }
        }
    }

    /// What has been read and is in no line yet, and the rest of the body.
    pub(crate) fn into_rest(self) -> (Bytes, Body) {
        (self.tail.freeze(), self.body)
    }
}

impl FromRequest<App> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let bytes_max = app.settings.body_bytes_max;
        let declared = request.headers().get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let body = request.into_body();
        if declared.is_some_and(|length| length > bytes_max as u64) {
            discard(body);
            return Err(too_large(bytes_max));
        }
        match Limited::new(body, bytes_max).collect().await {
            Ok(collected) => Ok(Self(collected.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
            Err(error) => Err(ApiError::bad("unreadable_body", format!("the body cannot be read: {error}"))),
        }
    }
}

impl FromRequest<App> for Object {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Raw(bytes) = Raw::from_request(request, app).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(other) => {
                let shown: String = other.to_string().chars().take(80).collect();
                Err(ApiError::bad("not_an_object", format!("the body must be a JSON object, not {shown}")))
            }
            Err(error) => Err(ApiError::bad("not_json", format!("not JSON: {error}"))),
        }
    }
}

impl<T: DeserializeOwned> FromRequest<App> for Fields<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Object(object) = Object::from_request(request, app).await?;
        serde_json::from_value(Value::Object(object))
            .map(Self)
            .map_err(|error| ApiError::bad("wrong_field", format!("the body does not fit: {error}")))
    }
}

fn too_large(bytes_max: usize) -> ApiError {
    let message = format!("the body is larger than {bytes_max} bytes (--max-body-bytes)");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

fn discard(body: Body) {
    tokio::spawn(tokio::time::timeout(DISCARDED_WITHIN, async move {
        let mut body = std::pin::pin!(Limited::new(body, DISCARDED_BYTES_MAX));
        // Only the reading matters.
        while let Some(Ok(_)) = body.frame().await {}
    }));
}
