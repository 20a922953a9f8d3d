//! Where producers may put large rollouts themselves.

use axum::Json;
use axum::http::StatusCode;
use rollyard_core::wire::reference::{blob_name, hex};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::app::OfRun;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(uploads))
}

/// Addresses are given for so long.
const VALID_SECS: u64 = 900;

/// Most addresses in one call.
const UPLOADS_MAX: usize = 1000;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Large {
    rollouts: Vec<LargeRollout>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LargeRollout {
    uid: String,
    /// xxh3 (64 bits) of the rollout's bytes, in 16 hex digits.
    xxh3: String,
}

#[derive(Serialize, ToSchema)]
struct Uploads {
    /// To be told with `stored`: what is put there is for the owner that the run has now.
    claim: u64,
    /// What is not larger than this is better sent whole.
    inline_bytes_max: usize,
    valid_seconds: u64,
    /// An address for each rollout, to which its bytes are to be PUT.
    urls: Vec<String>,
}

/// Ask where large rollouts can be put, so that they do not go through a server. Then write a line for each with
/// `stored` in place of its `messages`.
#[utoipa::path(post, path = "/runs/{run}/uploads", tag = "rollouts", params(("run" = String, Path)),
    responses((status = 200, body = Uploads), (status = 400, body = ErrorAnswer), (status = 409, body = ErrorAnswer)))]
async fn uploads(
    OfRun(yard): OfRun,
    Fields(Large { rollouts }): Fields<Large>,
) -> Result<Json<Uploads>, ApiError> {
    if rollouts.len() > UPLOADS_MAX {
        let expected = format!("at most {UPLOADS_MAX} of them");
        return Err(ApiError::wrong_field("rollouts", format!("{} rollouts", rollouts.len()), &expected));
    }
    let Some((place, claim)) = yard.blobs() else { return Err(none()) };
    let mut names = Vec::with_capacity(rollouts.len());
    for LargeRollout { uid, xxh3 } in rollouts {
        let digest = hex(&xxh3, 16);
        let digest =
            digest.ok_or_else(|| ApiError::wrong_field("xxh3", format!("{xxh3:?}"), "16 hex digits"))?;
        names.push(blob_name(&uid, digest, claim));
    }
    let inline_bytes_max = place.inline_max();
    let valid_for = Duration::from_secs(VALID_SECS);
    let signing = tokio::task::spawn_blocking(move || {
        names.iter().map(|name| place.signed_url(name, valid_for)).collect::<Result<Option<Vec<_>>, _>>()
    });
    let signed = signing.await.map_err(|error| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "signing_failed", error.to_string())
    })?;
    let signed = signed.map_err(|error| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "signing_failed", error.to_string())
    })?;
    let urls = signed.ok_or_else(none)?;
    Ok(Json(Uploads { claim, inline_bytes_max, valid_seconds: VALID_SECS, urls }))
}

fn none() -> ApiError {
    let message =
        "this server has no addresses to put rollouts to (`--blobs s3://…` has them): send them whole";
    ApiError::new(StatusCode::CONFLICT, "no_uploads", message)
}
