//! Generators: which there are, and starting and stopping that of a run.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::{RunAnswer, describe};
use crate::App;
use crate::app::OfRun;
use crate::error::{ApiError, ErrorAnswer};
use crate::start;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(stop)).routes(routes!(start_again))
}

/// A generator has five seconds to end by itself.
const STOPPED_WITHIN: Duration = Duration::from_secs(15);

#[derive(Serialize, ToSchema)]
struct GeneratorsAnswer {
    /// The folder that is looked at, if one was named.
    folder: Option<String>,
    /// Every task type that a start may name.
    task_types: Vec<String>,
    generators: Vec<GeneratorFile>,
    /// Files that cannot be used, or not as they are now.
    problems: Vec<GeneratorProblem>,
}

#[derive(Serialize, ToSchema)]
struct GeneratorFile {
    file: String,
    task_type: String,
    /// The functions it has in place of our own rules.
    hooks: Vec<&'static str>,
    /// When the file was changed, in seconds since 1970.
    stamp: f64,
}

#[derive(Serialize, ToSchema)]
struct GeneratorProblem {
    file: String,
    problem: String,
}

/// The generator files that were found, and what is wrong with the others.
#[utoipa::path(get, path = "/generators", tag = "generators", responses((status = 200, body = GeneratorsAnswer)))]
async fn list(State(app): State<App>) -> Json<GeneratorsAnswer> {
    app.generators.looked().await;
    let files = app.generators.known().into_iter().map(|known| GeneratorFile {
        file: known.file.display().to_string(),
        task_type: known.task_type.clone(),
        hooks: known.hooks.iter().map(|hook| hook.name()).collect(),
        stamp: known.stamp,
    });
    let problems = app.generators.problems().into_iter().map(|problem| GeneratorProblem {
        file: problem.file.display().to_string(),
        problem: problem.problem,
    });
    Json(GeneratorsAnswer {
        folder: app.settings.generators.as_ref().map(|dir| dir.display().to_string()),
        task_types: app.generators.task_types(),
        generators: files.collect(),
        problems: problems.collect(),
    })
}

/// Stop the generator of a run; what it has written stays. One that does not run is left as it is.
#[utoipa::path(post, path = "/runs/{run}/generator/stop", tag = "generators", params(("run" = String, Path)),
    responses((status = 200, body = RunAnswer), (status = 404, body = ErrorAnswer)))]
async fn stop(State(app): State<App>, OfRun(yard): OfRun) -> Result<Json<RunAnswer>, ApiError> {
    if yard.ask(|ledger| ledger.generator().is_none()).await? {
        return Err(no_generator(&yard));
    }
    if tokio::time::timeout(STOPPED_WITHIN, app.generators.stop(&yard)).await.is_err() {
        let message = format!("the generator did not stop within {} s; it will", STOPPED_WITHIN.as_secs());
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_stopped_yet", message));
    }
    Ok(Json(describe(&app, &yard).await?))
}

/// Start the generator of a run again, with what it was started with last. One that runs is left as it is.
#[utoipa::path(post, path = "/runs/{run}/generator/start", tag = "generators", params(("run" = String, Path)),
    responses((status = 200, body = RunAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn start_again(State(app): State<App>, OfRun(yard): OfRun) -> Result<Json<RunAnswer>, ApiError> {
    let (is_known, payload) =
        yard.ask(|ledger| (ledger.generator().is_some(), ledger.start().map(str::to_owned))).await?;
    let payload = payload.and_then(|payload| serde_json::from_str(&payload).ok());
    let (true, Some(payload)) = (is_known, payload) else { return Err(no_generator(&yard)) };
    start::start_again(&app, &yard, payload).await?;
    Ok(Json(describe(&app, &yard).await?))
}

fn no_generator(yard: &rollyard_store::yard::Yard) -> ApiError {
    let message =
        format!("run {:?} never had a generator; /start_rollout gives it one", yard.run_name().as_str());
    ApiError::new(StatusCode::NOT_FOUND, "no_generator", message)
}
