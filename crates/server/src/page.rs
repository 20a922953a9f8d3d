//! The pages around the API.
//!
//! The page that people look at is built by `web/` and served from a [`bundle`]. A server that was built without it
//! still shows the books of its runs, and says how to get the page.

mod bundle;

pub(crate) use bundle::Bundle;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::App;
use crate::error::ApiError;
use crate::guard::Guard;

/// What a browser needs before anybody has signed in.
pub(crate) fn is_file(path: &str) -> bool {
    matches!(path, "/" | "/live" | "/favicon.svg" | "/favicon.ico") || path.starts_with("/assets/")
}

pub(crate) fn routes(guard: Arc<Guard>) -> Router<App> {
    Router::new()
        .route("/", get(home))
        .route("/live", get(page))
        .route("/assets/{*name}", get(asset))
        .route("/favicon.svg", get(icon))
        .route("/favicon.ico", get(icon))
        .route("/healthz", get(healthz))
        .layer(Extension(guard))
}

/// For programs the greeting that slime's clients know; for people the page.
async fn home(
    app: State<App>,
    guard: Extension<Arc<Guard>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        return Ok(Json(json!({"message": "Rollout Buffer Server is running"})).into_response());
    }
    page(app, guard, headers).await
}

/// Which of its sides is shown, the page tells by its address.
async fn page(
    State(app): State<App>,
    Extension(guard): Extension<Arc<Guard>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    match app.page.answer("index.html", &headers).await {
        Some(page) => Ok(page),
        // The page itself may be seen by everybody; the books may not.
        None => plain(&app, guard.admits(&headers)).await,
    }
}

/// The books of every run, and how to get more.
async fn plain(app: &App, with_books: bool) -> Result<Response, ApiError> {
    let mut rows = String::new();
    if !with_books {
        rows.push_str(
            "<tr><td colspan=7>The books need the token: rollyard stats --url URL --token TOKEN</tr>",
        );
    }
    for yard in app.runs.all().into_iter().filter(|_| with_books) {
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
    let page = include_str!("page/plain.html").replace("{rows}", &rows);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    Ok((headers, Html(page)).into_response())
}

async fn asset(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = app.page.answer(&format!("assets/{name}"), &headers).await;
    found.ok_or_else(|| nothing_at(&uri))
}

async fn icon(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = app.page.answer(uri.path().trim_start_matches('/'), &headers).await;
    found.ok_or_else(|| nothing_at(&uri))
}

/// Healthy means that every run answers from its disk.
async fn healthz(State(app): State<App>) -> Result<Response, ApiError> {
    for yard in app.runs.all() {
        match yard.ask(|_| ()).await {
            Err(error) if !app.runs.is_going(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(Json(json!({"status": "ok"})).into_response())
}

pub(crate) async fn not_found(uri: Uri) -> ApiError {
    nothing_at(&uri)
}

fn nothing_at(uri: &Uri) -> ApiError {
    let message = format!("nothing is served at {:?}; the calls are listed at /api/openapi.json", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", message)
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let message = format!("{method} cannot be used on {:?}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
}
