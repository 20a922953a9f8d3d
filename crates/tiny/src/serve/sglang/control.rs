//! How the engine fares, and what it is told to do: pause, abort, take new weights.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rollyard_engine::generate::GenerationConfig;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::App;
use super::super::body::{self, Body};
use super::super::refusal::{Refusal, shown};
use super::Failure;
use crate::engine::Ask;
use crate::train::Checkpoint;

const HEALTHY_WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn health() -> StatusCode {
    StatusCode::OK
}

/// Samples a token to find out.
pub(super) async fn health_generate(State(app): State<Arc<App>>) -> Result<StatusCode, Failure> {
    let unwell = |why: &str| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unwell", why);
    if app.engine.stats().paused {
        return Err(unwell("the engine is paused; POST /continue_generation").into());
    }
    let sampling = GenerationConfig { max_new_tokens: 1, ..GenerationConfig::default() };
    let ask = Ask { rid: app.name_request(), prompt: vec![0], sampling, ..Ask::default() };
    let sampled = tokio::time::timeout(HEALTHY_WITHIN, app.engine.ask(ask)).await;
    sampled.map_err(|_| unwell("no token came within 20 s"))??;
    Ok(StatusCode::OK)
}

pub(super) async fn model_info(State(app): State<Arc<App>>) -> Json<Value> {
    let name = &app.settings.model_name;
    Json(json!({"model_path": name, "tokenizer_path": name, "is_generation": true,
        "weight_version": app.engine.stats().version.to_string()}))
}

pub(super) async fn server_info(State(app): State<Arc<App>>) -> Json<Value> {
    let stats = app.engine.stats();
    Json(json!({"model_path": app.settings.model_name, "served_model_name": app.settings.model_name,
        "context_length": app.engine.context(), "vocab_size": app.engine.vocabulary(),
        "weight_version": stats.version.to_string(), "is_paused": stats.paused, "running": stats.running,
        "waiting": stats.waiting, "sampled_tokens": stats.sampled, "version": env!("CARGO_PKG_VERSION")}))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Abort {
    rid: Option<String>,
    abort_all: Option<bool>,
}

pub(super) async fn abort(State(app): State<Arc<App>>, body: Body) -> Result<Json<Value>, Failure> {
    let Abort { rid, abort_all } = body::read(body)?;
    let whom = match (rid.filter(|rid| !rid.is_empty()), abort_all.unwrap_or_default()) {
        (_, true) => None,
        (Some(rid), false) => Some(rid),
        (None, false) => {
            return Err(Refusal::missing("rid", "the name of a request, or \"abort_all\": true").into());
        }
    };
    let aborted = app.engine.abort(whom).await?;
    Ok(Json(json!({"success": true, "aborted": aborted})))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pause {
    mode: Option<String>,
}

pub(super) async fn pause(State(app): State<Arc<App>>, body: Body) -> Result<Json<Value>, Failure> {
    let Pause { mode } = body::read_or_default(body)?;
    // Whoever asks to keep requests would be surprised to have them answered.
    if let Some(mode) = mode.filter(|mode| mode != "abort") {
        let want = "\"abort\": requests are answered with what they have";
        return Err(Refusal::wrong("mode", format!("{:?}", shown(mode)), want).into());
    }
    app.engine.hold().await?;
    Ok(Json(json!({"success": true, "message": "paused; POST /continue_generation to go on"})))
}

pub(super) async fn go_on(State(app): State<Arc<App>>) -> Result<Json<Value>, Failure> {
    app.engine.go_on().await?;
    Ok(Json(json!({"success": true, "message": "going on"})))
}

/// There is no cache between requests, so it is always empty.
pub(super) async fn flush() -> Json<Value> {
    Json(json!({"success": true, "message": "there is nothing to flush"}))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Update {
    model_path: Option<PathBuf>,
    weight_version: Option<Value>,
}

/// New weights from a checkpoint. What is under way is answered with what it has.
pub(super) async fn update_weights(State(app): State<Arc<App>>, body: Body) -> Result<Json<Value>, Failure> {
    let Update { model_path, weight_version } = body::read(body)?;
    let path = model_path.ok_or_else(|| Refusal::missing("model_path", "the file of a checkpoint"))?;
    let version = weight_version.as_ref().map(read_version).transpose()?;
    let closed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "closed", "the server stops");
    let turn = app.updates.acquire().await.map_err(closed)?;
    let roots = app.settings.roots.clone();
    let loaded = tokio::task::spawn_blocking(move || load(&path, &roots)).await;
    let checkpoint = loaded.map_err(|error| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "load_failed", format!("loading failed: {error}"))
    })??;
    // Other weights must not go by the version that these had.
    let version = version.unwrap_or_else(|| app.engine.stats().version.saturating_add(1));
    app.engine.update(Arc::new(checkpoint.weights), version).await?;
    drop(turn);
    let message = format!("the weights are of version {version} now");
    Ok(Json(json!({"success": true, "message": message, "weight_version": version.to_string()})))
}

fn load(path: &Path, roots: &[PathBuf]) -> Result<Checkpoint, Refusal> {
    let field = "model_path";
    let bad = |reason: String| Refusal::bad(field, format!("field {field:?}: {reason}"));
    let inside = |path: &Path| {
        roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| path.starts_with(root))
    };
    // A path that leads nowhere is not told from one that leads outside: what is there is nobody's business.
    let real = path.canonicalize().ok().filter(|path| inside(path)).ok_or_else(|| {
        let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        bad(format!(
            "there is no such file in the folders of --root ({}): {}",
            roots.join(", "),
            path.display()
        ))
    })?;
    Checkpoint::load(&real, None).map_err(|error| bad(error.to_string()))
}

fn read_version(given: &Value) -> Result<i32, Refusal> {
    let version = match given {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64().and_then(|version| i32::try_from(version).ok()),
    };
    version
        .filter(|version| *version >= 0)
        .ok_or_else(|| Refusal::wrong("weight_version", shown(given), "a whole number from 0 on"))
}
