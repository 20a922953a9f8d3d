//! What the calls of a view have in common: parameters, work that blocks, events, and how the store's errors are told.

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::sse::Event;
use rollyard_store::catalog::CatalogError;
use rollyard_store::places::PlaceError;
use rollyard_store::query::{Mistake, QueryError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::App;
use crate::error::{ApiError, Hint};

/// The parameters of a URL. An error names the one to blame.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, app).await;
        let Query(params) = read.map_err(|error| ApiError::bad("wrong_parameter", error.body_text()))?;
        Ok(Self(params))
    }
}

/// Runs what reads files or SQLite where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", format!("a read broke off: {error}")))
    })
}

/// A server-sent event with JSON in it.
pub(super) fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(serde_json::to_string(data).unwrap_or_else(|error| error.to_string()))
}

/// An error in the middle of a stream, in the words it would have had as an answer.
pub(super) fn error_event(error: &ApiError) -> Event {
    event("error", &error.detail())
}

/// Browsers read numbers as doubles: a larger integer would silently become another one, so it goes as text.
pub(super) fn exact(value: Value) -> Value {
    const EXACT_MAX: u64 = 1 << 53;
    match &value {
        Value::Number(number) if number.as_i64().is_some_and(|n| n.unsigned_abs() > EXACT_MAX) => {
            Value::String(number.to_string())
        }
        _ => value,
    }
}

/// The words of a list that is given as one parameter.
pub(super) fn words(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        let status = match error {
            PlaceError::NotAPlace { .. } | PlaceError::NoRollouts { .. } => StatusCode::BAD_REQUEST,
            PlaceError::NotFound { .. } => StatusCode::NOT_FOUND,
            PlaceError::NotAllowed { .. } => StatusCode::FORBIDDEN,
            PlaceError::Changed { .. } => StatusCode::CONFLICT,
            // Somebody else's no: the store's or the disk's.
            PlaceError::Denied { .. } | PlaceError::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            PlaceError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let message = error.to_string();
        match error {
            CatalogError::Place(error) => error.into(),
            CatalogError::NoRow(_) => Self::new(StatusCode::NOT_FOUND, "row_unknown", message),
            CatalogError::Cancelled => Self::new(StatusCode::SERVICE_UNAVAILABLE, "cancelled", message),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "catalog", message),
        }
    }
}

impl From<Mistake> for ApiError {
    fn from(mistake: Mistake) -> Self {
        let Mistake { message, at, expected } = mistake;
        let hint = Hint { at: Some([at.start, at.end]), expected, nearest: Vec::new() };
        Self { hint: Some(Box::new(hint)), ..Self::bad("bad_filter", message) }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Mistake(mistake) => mistake.into(),
            QueryError::Catalog(error) => error.into(),
            QueryError::Cancelled => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "cancelled", error.to_string())
            }
            QueryError::Sql(message) => Self::bad("bad_sql", message),
        }
    }
}
