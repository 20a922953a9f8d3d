//! OpenAI's calls, each with and without `/v1`.
//!
//! [`asked`] reads a request, [`messages`] makes tokens of a conversation. [`chat`] and [`completions`] put the answers
//! into words, whole or piece by piece by way of a [`voice`].

mod asked;
mod chat;
mod completions;
mod messages;
mod voice;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::App;
use super::refusal::{self, Form, Refusal};

const PATHS: [&str; 3] = ["/chat/completions", "/completions", "/models"];

pub(super) fn routes() -> Router<Arc<App>> {
    let calls = Router::new()
        .route("/chat/completions", post(chat::answer))
        .route("/completions", post(completions::answer))
        .route("/models", get(models))
        .route("/models/{*name}", get(model));
    calls.clone().nest("/v1", calls)
}

/// Whether a path is one of these calls.
pub(super) fn has(path: &str) -> bool {
    path.starts_with("/v1") || PATHS.iter().any(|call| path.starts_with(call))
}

/// `{"error": {"message", "type", "param", "code"}}`
#[derive(Debug)]
pub(super) struct OpenAi;

pub(super) type Failure = refusal::Failure<OpenAi>;

impl Form for OpenAi {
    fn body(refusal: &Refusal) -> Value {
        let Refusal { status, code, field, message } = refusal;
        let kind = match *status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "authentication_error",
            StatusCode::NOT_FOUND => "not_found_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": message, "type": kind, "param": field, "code": code}})
    }
}

async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({"object": "list", "data": [card(&app)]}))
}

async fn model(
    State(app): State<Arc<App>>,
    axum::extract::Path(name): axum::extract::Path<String>,
) -> Result<Json<Value>, Failure> {
    check_model(&app, &name)?;
    Ok(Json(card(&app)))
}

fn card(app: &App) -> Value {
    let created = app.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({"id": app.settings.model_name, "object": "model", "created": created, "owned_by": "rollyard",
        "max_model_len": app.engine.context()})
}

fn check_model(app: &App, name: &str) -> Result<(), Refusal> {
    let here = &app.settings.model_name;
    if name == here {
        return Ok(());
    }
    let message = format!("field \"model\" is {name:?}, but the model here is called {here:?}");
    let refusal = Refusal::new(StatusCode::NOT_FOUND, "model_not_found", message);
    Err(Refusal { field: Some("model".to_owned()), ..refusal })
}
