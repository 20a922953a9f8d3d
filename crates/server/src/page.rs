//! The pages around the API.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;
use std::fmt::Write as _;

use crate::App;
use crate::error::ApiError;

/// For programs the greeting that slime's clients know; for people the books of every run.
pub(crate) async fn home(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        return Ok(Json(json!({"message": "Rollout Buffer Server is running"})).into_response());
    }
    let mut rows = String::new();
    for yard in app.runs.all() {
        let (books, ready) = yard.ask(|ledger| (ledger.books().clone(), ledger.ready_groups())).await?;
        // Run names are letters, digits, '-', '_' and '.': nothing to escape.
        let _infallible = write!(
            rows,
            "<tr><td><a href=\"/api/runs/{run}\">{run}</a><td>{}<td>{}<td>{ready}<td>{}<td>{}<td>{}</tr>",
            books.admitted,
            books.held,
            books.leased,
            books.trained,
            books.dropped_total(),
            run = yard.run_name(),
        );
    }
    let page = include_str!("home.html").replace("{rows}", &rows);
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    Ok(([(header::CONTENT_SECURITY_POLICY, policy)], Html(page)).into_response())
}

/// Healthy means that every run answers from its disk.
pub(crate) async fn healthz(State(app): State<App>) -> Result<Response, ApiError> {
    for yard in app.runs.all() {
        yard.ask(|_| ()).await?;
    }
    Ok(Json(json!({"status": "ok"})).into_response())
}

pub(crate) async fn not_found(uri: Uri) -> ApiError {
    let message = format!("nothing is served at {:?}; the calls are listed at /api/openapi.json", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", message)
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let message = format!("{method} cannot be used on {:?}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
}
