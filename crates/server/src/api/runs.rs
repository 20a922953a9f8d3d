//! Runs: making them, their knobs, their books.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Books, Command, Ledger};
use rollyard_store::archive::Status;
use rollyard_store::yard::{Yard, YardError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::replay::PoolAnswer;
use crate::App;
use crate::app::OfRun;
use crate::body::{Fields, Object};
use crate::error::{ApiError, ErrorAnswer};
use crate::generators::{GeneratorAnswer, Noted};
use crate::start::create;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(show, configure))
        .routes(routes!(books))
        .routes(routes!(close_group))
}

#[derive(Serialize, ToSchema)]
pub(super) struct RunAnswer {
    run: String,
    #[schema(value_type = Object)]
    config: Map<String, Value>,
    /// The payload of `/start_rollout`, if there was one.
    start: Option<Value>,
    version: Option<u64>,
    /// What can be drawn, in a run that samples.
    pool: Option<PoolAnswer>,
    open_groups: usize,
    /// Groups that the hooks of the run's generator are asked about.
    posed_groups: usize,
    ready_groups: usize,
    leases_out: usize,
    /// Steps that a rewind can go back to.
    commits: Vec<u64>,
    books: BooksAnswer,
    /// Who makes its rollouts, once it was started.
    pub(super) generator: Option<GeneratorAnswer>,
    /// Where its rollouts are kept, if they are.
    archive: Option<ArchiveAnswer>,
}

/// How the archive of a run is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArchiveAnswer {
    pub(crate) place: String,
    /// Everything up to this record of the run's log is archived.
    archived_seq: u64,
    /// Records that are not yet; their rollouts stay in the run's folder.
    pub(crate) behind: u64,
    /// Rollouts that had left the run before it was archived, or were damaged.
    missing: u64,
    /// Why it is not getting on.
    pub(crate) error: Option<String>,
}

impl From<Status> for ArchiveAnswer {
    fn from(status: Status) -> Self {
        let Status { place, archived_seq, behind, missing, error, .. } = status;
        Self { place, archived_seq, behind, missing, error }
    }
}

/// Where every rollout that was ever admitted is: admitted = held + leased + trained + dropped.
#[derive(Serialize, ToSchema)]
pub(crate) struct BooksAnswer {
    admitted: u64,
    held: u64,
    leased: u64,
    trained: u64,
    dropped: u64,
    dropped_by_reason: BTreeMap<&'static str, u64>,
    balanced: bool,
    held_bytes: u64,
    leased_bytes: u64,
    /// Acked, and kept so that a rewind can put them back.
    retained: u64,
    retained_bytes: u64,
}

impl From<&Books> for BooksAnswer {
    fn from(books: &Books) -> Self {
        Self {
            admitted: books.admitted,
            held: books.held,
            leased: books.leased,
            trained: books.trained,
            dropped: books.dropped_total(),
            dropped_by_reason: books.dropped.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
            balanced: books.balanced(),
            held_bytes: books.held_bytes,
            leased_bytes: books.leased_bytes,
            retained: books.retained,
            retained_bytes: books.retained_bytes,
        }
    }
}

pub(super) async fn describe(app: &App, yard: &Yard) -> Result<RunAnswer, YardError> {
    let run = yard.run_name().to_string();
    let look = move |ledger: &Ledger| RunAnswer {
        run,
        config: ledger.config().to_map(),
        start: ledger.start().and_then(|start| serde_json::from_str(start).ok()),
        version: ledger.version(),
        pool: PoolAnswer::of(ledger),
        open_groups: ledger.open_groups(),
        posed_groups: ledger.posed_groups(),
        ready_groups: ledger.ready_groups(),
        leases_out: ledger.leases_out(),
        commits: ledger.commits().to_vec(),
        books: ledger.books().into(),
        generator: None,
        archive: None,
    };
    let (mut answer, noted) = yard.ask(|ledger| (look(ledger), Noted::of(ledger))).await?;
    answer.generator = app.generators.describe(&answer.run, noted);
    answer.archive = app.runs.archiver(&answer.run).map(|archiver| archiver.status().into());
    Ok(answer)
}

/// All runs.
#[utoipa::path(get, path = "/runs", tag = "runs", responses((status = 200, body = Vec<RunAnswer>)))]
async fn list(State(app): State<App>) -> Result<Json<Vec<RunAnswer>>, ApiError> {
    let mut runs = Vec::new();
    for yard in app.runs.all() {
        let mut run = match describe(&app, &yard).await {
            Ok(run) => run,
            Err(error) if app.runs.is_going(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(generator) = &mut run.generator {
            generator.log.clear();
        }
        runs.push(run);
    }
    Ok(Json(runs))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRun {
    /// Letters, digits, '-', '_' and '.'.
    name: String,
    /// Knobs that differ from the server's defaults.
    #[serde(default)]
    #[schema(value_type = Object)]
    config: Map<String, Value>,
}

/// Make a run. A run that exists is left as it is and returned.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = NewRun,
    responses((status = 201, body = RunAnswer), (status = 200, body = RunAnswer), (status = 400, body = ErrorAnswer)))]
async fn make(State(app): State<App>, Fields(new): Fields<NewRun>) -> Result<Response, ApiError> {
    let run = RunName::try_from(new.name.as_str())?;
    let config = app.runs.defaults().patched(&new.config)?;
    let (yard, made) = create(&app, run, config).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(describe(&app, &yard).await?)).into_response())
}

/// A run: its knobs, its groups, its books.
#[utoipa::path(get, path = "/runs/{run}", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = RunAnswer), (status = 404, body = ErrorAnswer)))]
async fn show(State(app): State<App>, OfRun(yard): OfRun) -> Result<Json<RunAnswer>, ApiError> {
    Ok(Json(describe(&app, &yard).await?))
}

/// Turn knobs. What is not named stays as it is.
#[utoipa::path(patch, path = "/runs/{run}", tag = "runs", params(("run" = String, Path)), request_body = Object,
    responses((status = 200, body = RunAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn configure(
    State(app): State<App>,
    OfRun(yard): OfRun,
    Object(changes): Object,
) -> Result<Json<RunAnswer>, ApiError> {
    yard.run(Command::Configure { changes, start: None }).await?;
    Ok(Json(describe(&app, &yard).await?))
}

/// The books of a run.
#[utoipa::path(get, path = "/runs/{run}/books", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = BooksAnswer), (status = 404, body = ErrorAnswer)))]
async fn books(OfRun(yard): OfRun) -> Result<Json<BooksAnswer>, ApiError> {
    Ok(Json(yard.ask(|ledger| BooksAnswer::from(ledger.books())).await?))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CloseGroup {
    instance_id: String,
}

/// Stop waiting for more rollouts of an instance: its open group is used or dropped now.
#[utoipa::path(post, path = "/runs/{run}/close_group", tag = "runs", params(("run" = String, Path)),
    request_body = CloseGroup, responses((status = 200, body = BooksAnswer), (status = 404, body = ErrorAnswer)))]
async fn close_group(
    OfRun(yard): OfRun,
    Fields(close): Fields<CloseGroup>,
) -> Result<Json<BooksAnswer>, ApiError> {
    let done = yard.run(Command::CloseGroup { instance: close.instance_id }).await?;
    Ok(Json((&done.books).into()))
}
