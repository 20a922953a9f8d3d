//! Takes a request's body in, within limits.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

use crate::error::ApiError;

/// How much of a refused body is read and thrown away, so that its sender sees the refusal and not a reset.
const DISCARDED_BYTES_MAX: usize = 2 << 30;
const DISCARDED_WITHIN: Duration = Duration::from_secs(10);

pub(crate) async fn read_body(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let declared =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > bytes_max as u64) {
        discard(body);
        return Err(too_large(bytes_max));
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
        Err(error) => Err(ApiError::bad("unreadable_body", format!("the body cannot be read: {error}"))),
    }
}

/// A JSON object; an empty body is an empty one.
pub(crate) async fn read_object(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<Map<String, Value>, ApiError> {
    let bytes = read_body(headers, body, bytes_max).await?;
    if bytes.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => {
            let shown: String = other.to_string().chars().take(80).collect();
            Err(ApiError::bad("not_an_object", format!("the body must be a JSON object, not {shown}")))
        }
        Err(error) => Err(ApiError::bad("not_json", format!("not JSON: {error}"))),
    }
}

/// A JSON object of a known shape. An error names the field.
pub(crate) async fn read_json<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<T, ApiError> {
    let object = read_object(headers, body, bytes_max).await?;
    serde_json::from_value(Value::Object(object))
        .map_err(|error| ApiError::bad("wrong_field", format!("the body does not fit: {error}")))
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
