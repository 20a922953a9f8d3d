//! `/start_rollout`: a trainer says what it wants generated, and with it the knobs of its run.
//!
//! The knobs are set, the payload is kept with the run, and whoever makes the rollouts of that task is started: a
//! generator file, the built-in task, or somebody outside who writes to `/buffer/write`. A second start is the first
//! one again, not a new beginning: nothing that is held is dropped, and a generator that runs goes on.

use axum::Json;
use axum::extract::{RawPathParams, State};
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::RunName;
use rollyard_core::ledger::Command;
use rollyard_core::run_config::{KNOBS, RunConfig};
use rollyard_engine::generator::Hook;
use rollyard_engine::task::{MathTask, StartPayload, TaskError};
use rollyard_store::yard::Yard;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

use crate::App;
use crate::body::Object;
use crate::error::{ApiError, ErrorAnswer};
use crate::generators::{Maker, Started, is_same_work};
use crate::runs::DEFAULT_RUN;

/// Configure a run for a task and start its generator. Idempotent; what the run holds stays.
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
    let maker = check(&app, &payload).await?;

    let known = app.runs.find(run.as_str());
    let (current, last) = match &known {
        Ok(yard) => yard.ask(|ledger| (ledger.config().to_map(), ledger.start().map(str::to_owned))).await?,
        Err(_) => (Map::new(), None),
    };
    let changes = knobs(&payload, &maker, &current, app.runs.defaults());
    let yard = match known {
        Ok(yard) => yard,
        Err(_) => create(&app, run, app.runs.defaults().patched(&changes)?).await?.0,
    };
    let start = Some(Value::Object(payload.clone()).to_string());
    let done = yard.run(Command::Configure { changes, start }).await?;
    let config = yard.ask(|ledger| ledger.config().clone()).await?;
    let last: Option<Map<String, Value>> = last.and_then(|last| serde_json::from_str(&last).ok());
    let resumes = last.is_some_and(|last| is_same_work(&last, &payload));
    let started = app.generators.start(&yard, maker, payload, resumes);
    Ok(Json(json!({
        "success": true,
        "message": "Rollout started",
        "run": yard.run_name(),
        "task_type": config.task_type,
        "group_size": config.group_size,
        "changed": done.changed,
        "generator": started.map_or("external: rollouts are awaited at /buffer/write", Started::name),
    }))
    .into_response())
}

/// Starts the generator of a run with the payload of its last start.
pub(crate) async fn start_again(app: &App, yard: &Yard, payload: Map<String, Value>) -> Result<(), ApiError> {
    let maker = check(app, &payload).await?;
    app.generators.start(yard, maker, payload, true);
    Ok(())
}

/// The run of that name, made if it does not exist, on a thread that may wait for the disk.
pub(crate) async fn create(app: &App, run: RunName, config: RunConfig) -> Result<(Yard, bool), ApiError> {
    if let Some(cluster) = &app.cluster {
        return Ok(cluster.create(app, run, config).await?);
    }
    let runs = std::sync::Arc::clone(&app.runs);
    let made = tokio::task::spawn_blocking(move || runs.create(&run, &config))
        .await
        .map_err(|error| ApiError::bad("run_not_created", error.to_string()))?;
    let (yard, is_new) = made.map_err(ApiError::from)?;
    if is_new {
        app.generators.attach(&yard);
    }
    Ok((yard, is_new))
}

/// Whoever makes the rollouts, after a look at everything that could keep them from it.
async fn check(app: &App, payload: &Map<String, Value>) -> Result<Maker, ApiError> {
    let maker = match payload.get("task_type") {
        None => Maker::External,
        Some(Value::String(task_type)) => {
            app.generators.looked().await;
            let unknown = || {
                let message = app.generators.unknown(task_type);
                let outside = "If its rollouts come from outside, make it known with --allow-task-type NAME";
                ApiError::bad("unknown_task_type", format!("{message}. {outside}"))
            };
            app.generators.maker(task_type).ok_or_else(unknown)?
        }
        Some(other) => return Err(ApiError::wrong_field("task_type", other, "the name of a task")),
    };
    if let Some(file) = payload.get("input_file") {
        let (file, roots) = (file.clone(), app.settings.roots.clone());
        tokio::task::spawn_blocking(move || check_input_file(&file, &roots))
            .await
            .map_err(|error| ApiError::bad("unreadable_input_file", error.to_string()))??;
    }
    let has_engine =
        payload.get("remote_engine_url").and_then(Value::as_str).is_some_and(|url| !url.is_empty());
    match maker {
        Maker::External => {}
        _ if !has_engine => {
            let message = "field \"remote_engine_url\" is missing: the generator asks the engine there, such as \
                           http://127.0.0.1:30000/v1";
            let field = Some("remote_engine_url".to_owned());
            return Err(ApiError { field, ..ApiError::bad("missing_field", message) });
        }
        Maker::File(_) => {}
        Maker::BuiltIn => check_task(payload.clone()).await?,
    }
    Ok(maker)
}

async fn check_task(payload: Map<String, Value>) -> Result<(), ApiError> {
    let prepare = move || MathTask::prepare(StartPayload::parse(&payload)?).map(drop);
    let prepared = tokio::task::spawn_blocking(prepare).await;
    let prepared = prepared.map_err(|error| ApiError::bad("task_not_started", error.to_string()))?;
    prepared.map_err(|error: TaskError| {
        let field = match &error {
            TaskError::Payload(error) => Some(error.field().to_owned()),
            TaskError::Input(_) => Some("input_file".to_owned()),
            TaskError::Tokenizer { .. } => Some("tokenizer_path".to_owned()),
            _ => None,
        };
        ApiError { field, ..ApiError::bad("wrong_start", error.to_string()) }
    })
}

/// The knobs in a start payload: those it names, and those that follow from what it names.
fn knobs(
    payload: &Map<String, Value>,
    maker: &Maker,
    current: &Map<String, Value>,
    defaults: &RunConfig,
) -> Map<String, Value> {
    let mut changes: Map<String, Value> = KNOBS
        .iter()
        .filter_map(|knob| Some((knob.name.to_owned(), payload.get(knob.name)?.clone())))
        .collect();
    if let Some(repeats) = payload.get("num_repeat_per_sample") {
        changes.entry("group_size").or_insert_with(|| repeats.clone());
    }
    let hook = Value::from("hook");
    let defaults = defaults.to_map();
    for step in Hook::ALL {
        let has_it = maker.file().is_some_and(|generator| generator.hooks.contains(&step));
        if has_it {
            changes.entry(step.knob()).or_insert_with(|| hook.clone());
        } else if current.get(step.knob()) == Some(&hook)
            && let Some(default) = defaults.get(step.knob())
        {
            // The file has lost the function, or the task another file.
            changes.entry(step.knob()).or_insert_with(|| default.clone());
        }
    }
    if payload.get("task_type") == Some(&Value::from("math")) {
        let is_said = payload.contains_key("validate") || changes.get("validate") == Some(&hook);
        if !is_said {
            changes.insert("validate".to_owned(), Value::from("answered"));
        }
    }
    if matches!(maker, Maker::BuiltIn) {
        // Requests that are under way while the weights are updated must not tear their groups apart.
        changes.entry("version_spread_max").or_insert_with(|| Value::from(1));
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
