//! The trainer's steps: commit, rewind, and the version of the weights.

use axum::Json;
use rollyard_core::ids::LeaseNo;
use rollyard_core::ledger::Command;
use rollyard_store::yard::Done;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::BooksAnswer;
use crate::App;
use crate::app::OfRun;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(commit)).routes(routes!(rewind)).routes(routes!(set_version))
}

/// What a command came to.
#[derive(Serialize, ToSchema)]
pub(super) struct DoneAnswer {
    /// False if it had been done before.
    changed: bool,
    books: BooksAnswer,
}

impl From<Done> for DoneAnswer {
    fn from(done: Done) -> Self {
        Self { changed: done.changed, books: (&done.books).into() }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Commit {
    step: u64,
    /// The acked leases that went into the checkpoint; all of them if left out.
    leases: Option<Vec<u64>>,
}

/// Tie acked leases to a checkpoint.
#[utoipa::path(post, path = "/runs/{run}/commit", tag = "steps", params(("run" = String, Path)), request_body = Commit,
    responses((status = 200, body = DoneAnswer), (status = 409, body = ErrorAnswer)))]
async fn commit(OfRun(yard): OfRun, Fields(commit): Fields<Commit>) -> Result<Json<DoneAnswer>, ApiError> {
    let leases = commit.leases.map(|leases| leases.into_iter().map(LeaseNo).collect());
    Ok(Json(yard.run(Command::Commit { step: commit.step, leases }).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rewind {
    /// -1 is before the first.
    step: i64,
}

/// Put back everything consumed after a step: leases acked since, committed later, or still out.
#[utoipa::path(post, path = "/runs/{run}/rewind", tag = "steps", params(("run" = String, Path)), request_body = Rewind,
    responses((status = 200, body = DoneAnswer), (status = 409, body = ErrorAnswer)))]
async fn rewind(OfRun(yard): OfRun, Fields(rewind): Fields<Rewind>) -> Result<Json<DoneAnswer>, ApiError> {
    let command = match u64::try_from(rewind.step) {
        Ok(step) => Command::Rewind { step },
        Err(_) if rewind.step == -1 => Command::RewindToStart,
        Err(_) => {
            return Err(ApiError::wrong_field("step", rewind.step, "a step, or -1 for before the first"));
        }
    };
    Ok(Json(yard.run(command).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetVersion {
    version: u64,
}

/// Say which weights are being sampled with; rollouts that carry no version of their own get this one.
#[utoipa::path(post, path = "/runs/{run}/version", tag = "steps", params(("run" = String, Path)),
    request_body = SetVersion, responses((status = 200, body = DoneAnswer)))]
async fn set_version(
    OfRun(yard): OfRun,
    Fields(set): Fields<SetVersion>,
) -> Result<Json<DoneAnswer>, ApiError> {
    Ok(Json(yard.run(Command::SetVersion { version: set.version }).await?.into()))
}
