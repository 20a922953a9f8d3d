//! Views that got a name: a name for the part of a URL after its question mark.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::blocking;
use super::notes::Gone;
use super::sidecar::{Sidecar, Told};
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, save)).routes(routes!(remove))
}

const NAME_CHARS_MAX: usize = 200;
const QUERY_BYTES_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct Saved {
    file: Sidecar<Names>,
}

#[derive(Debug, Default)]
struct Names(BTreeMap<String, SavedView>);

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
struct SavedView {
    name: String,
    /// As it stands in the URL, after the question mark.
    query: String,
    /// When, in seconds since 1970.
    at: f64,
}

impl Told for Names {
    fn hear(&mut self, line: &Value) {
        let Some(name) = line.get("name").and_then(Value::as_str) else { return };
        if line.get("deleted") == Some(&Value::Bool(true)) {
            self.0.remove(name);
        } else if let Ok(saved) = SavedView::deserialize(line) {
            self.0.insert(name.to_owned(), saved);
        }
    }
}

impl Saved {
    pub(super) fn new(dir: &path::Path) -> Self {
        Self { file: Sidecar::new(dir.join("views.jsonl")) }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewView {
    name: String,
    query: String,
}

/// The saved views, by name.
#[utoipa::path(get, path = "/saved", tag = "view", responses((status = 200, body = Vec<SavedView>)))]
async fn list(State(app): State<App>) -> Result<Json<Vec<SavedView>>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || views.saved.file.ask(|names| Json(names.0.values().cloned().collect()))).await
}

/// Give a view a name. A name that was given before means this view from now on.
#[utoipa::path(post, path = "/saved", tag = "view", request_body = NewView,
    responses((status = 200, body = SavedView), (status = 400, body = ErrorAnswer)))]
async fn save(State(app): State<App>, Fields(new): Fields<NewView>) -> Result<Json<SavedView>, ApiError> {
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        let expected = format!("1 to {NAME_CHARS_MAX} characters");
        return Err(ApiError::wrong_field("name", format_args!("{:?}", new.name), &expected));
    }
    if new.query.len() > QUERY_BYTES_MAX {
        let expected = format!("at most {QUERY_BYTES_MAX} bytes");
        return Err(ApiError::wrong_field(
            "query",
            format_args!("a text of {} bytes", new.query.len()),
            &expected,
        ));
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let saved = SavedView { name, query: new.query, at };
    let views = Arc::clone(&app.views);
    blocking(move || {
        views.saved.file.append(&json!(saved))?;
        Ok(Json(saved))
    })
    .await
}

/// Forget a saved view.
#[utoipa::path(delete, path = "/saved/{name}", tag = "view", params(("name" = String, Path)),
    responses((status = 200, body = Gone), (status = 404, body = ErrorAnswer)))]
async fn remove(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Gone>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || {
        if !views.saved.file.ask(|names| names.0.contains_key(&name))? {
            let message = format!("there is no saved view {name:?}");
            return Err(ApiError::new(StatusCode::NOT_FOUND, "saved_unknown", message));
        }
        views.saved.file.append(&json!({"name": name, "deleted": true}))?;
        Ok(Json(Gone { deleted: true }))
    })
    .await
}
