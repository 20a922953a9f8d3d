//! `/start_rollout`: a trainer says what it wants generated, and with it the knobs of its run.
//!
//! The knobs are set and the payload is kept with the run. The rollouts themselves come from outside: a
//! generator that writes to `/buffer/write`. A second start is the first one again, not a new beginning:
//! nothing that is held is dropped.

use axum::Json;
use axum::extract::{RawPathParams, State};
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::RunName;
use rollyard_core::ledger::Command;
use rollyard_core::run_config::{KNOBS, RunConfig};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

use crate::App;
use crate::body::Object;
use crate::error::{ApiError, ErrorAnswer};
use crate::runs::DEFAULT_RUN;

/// Configure a run for a task. Idempotent; what the run holds stays.
#[utoipa::path(post, path = "/start_rollout", tag = "buffer", request_body = Value,
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer)))]
pub(crate) async fn start_rollout(
    State(app): State<App>,
    params: RawPathParams,
    Object(payload): Object,
) -> Result<Response, ApiError> {
    let named = params.iter().find(|(key, _)| *key == "run").map(|(_, name)| name);
    let name = match (named, payload.get("run")) {
        (Some(name), _) => name,
        (None, None | Some(Value::Null)) => DEFAULT_RUN,
        (None, Some(Value::String(name))) => name,
        (None, Some(other)) => {
            return Err(ApiError::bad(
                "wrong_field",
                format!("field \"run\" is {other}, but must be a text"),
            ));
        }
    };
    let run = RunName::try_from(name)?;
    check_task_type(&payload, &app.settings.task_types)?;
    if let Some(file) = payload.get("input_file") {
        let (file, roots) = (file.clone(), app.settings.roots.clone());
        tokio::task::spawn_blocking(move || check_input_file(&file, &roots))
            .await
            .map_err(|error| ApiError::bad("unreadable_input_file", error.to_string()))??;
    }

    let changes = knobs(&payload);
    let yard = match app.runs.find(run.as_str()) {
        Ok(yard) => yard,
        Err(_) => create(&app, run, app.runs.defaults().patched(&changes)?).await?.0,
    };
    let start = Some(Value::Object(payload).to_string());
    let done = yard.run(Command::Configure { changes, start }).await?;
    let config = yard.ask(|ledger| ledger.config().clone()).await?;
    Ok(Json(json!({
        "success": true,
        "message": "Rollout started",
        "run": yard.run_name(),
        "task_type": config.task_type,
        "group_size": config.group_size,
        "changed": done.changed,
        "generator": "external: rollouts are awaited at /buffer/write",
    }))
    .into_response())
}

/// The run of that name, made if it does not exist, on a thread that may wait for the disk.
pub(crate) async fn create(
    app: &App,
    run: RunName,
    config: RunConfig,
) -> Result<(rollyard_store::yard::Yard, bool), ApiError> {
    let runs = std::sync::Arc::clone(&app.runs);
    tokio::task::spawn_blocking(move || runs.create(&run, &config))
        .await
        .map_err(|error| ApiError::bad("run_not_created", error.to_string()))?
        .map_err(ApiError::from)
}

fn check_task_type(payload: &Map<String, Value>, more: &[String]) -> Result<(), ApiError> {
    let mut known = vec!["default", "math"];
    known.extend(more.iter().map(String::as_str));
    match payload.get("task_type") {
        None => Ok(()),
        Some(Value::String(task)) if known.contains(&task.as_str()) => Ok(()),
        Some(other) => Err(ApiError::bad(
            "unknown_task_type",
            format!(
                "task_type {other} is unknown; known are: {}. Make it known with --allow-task-type NAME",
                known.join(", ")
            ),
        )),
    }
}

/// The knobs in a start payload: those it names, and those that follow from what it names.
fn knobs(payload: &Map<String, Value>) -> Map<String, Value> {
    let mut changes: Map<String, Value> = KNOBS
        .iter()
        .filter_map(|knob| Some((knob.name.to_owned(), payload.get(knob.name)?.clone())))
        .collect();
    if let Some(repeats) = payload.get("num_repeat_per_sample") {
        changes.entry("group_size").or_insert_with(|| repeats.clone());
    }
    if payload.get("task_type") == Some(&Value::from("math")) {
        changes.entry("validate").or_insert_with(|| Value::from("answered"));
    }
    changes
}

/// A path from a request is only ever looked at inside the folders named at start.
fn check_input_file(file: &Value, roots: &[PathBuf]) -> Result<(), ApiError> {
    let refuse =
        |why: String| Err(ApiError::bad("unreadable_input_file", format!("input_file {file}: {why}")));
    let Value::String(path) = file else {
        return refuse("must be a path".to_owned());
    };
    let roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let shown = roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ");
    let outside = || {
        refuse(format!("outside the folders this server may read ({shown}); name its folder with --root DIR"))
    };
    // Nothing is said about what lies outside, not even whether it exists.
    let Ok(real) = Path::new(path).canonicalize() else {
        let lexically_inside =
            !path.contains("..") && roots.iter().any(|root| Path::new(path).starts_with(root));
        return if lexically_inside { refuse("no such file".to_owned()) } else { outside() };
    };
    if !roots.iter().any(|root| real.starts_with(root)) {
        return outside();
    }
    match std::fs::File::open(&real).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => refuse("not a file".to_owned()),
        Err(error) => refuse(error.to_string()),
    }
}
