//! What could be opened: folders and files below the roots, and the runs that are archived.

use axum::Json;
use axum::extract::State;
use rollyard_store::places::{Depth, FileInfo};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::search::flag;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(browse))
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct BrowseAsked {
    /// A folder or `s3://bucket/prefix`; the roots if left out.
    place: String,
    /// Everything below, not only one level.
    #[serde(deserialize_with = "flag")]
    recursive: bool,
    /// Only what has this in its name, whatever its case.
    name: String,
}

#[derive(Serialize, ToSchema)]
struct BrowseAnswer {
    /// As it is known everywhere else; null for the roots.
    place: Option<String>,
    folders: Vec<String>,
    files: Vec<FileAnswer>,
    /// Of all files that are listed.
    size_bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct FileAnswer {
    pub(super) file: String,
    pub(super) size_bytes: u64,
    /// Milliseconds since 1970.
    pub(super) modified_ms: i64,
}

impl From<FileInfo> for FileAnswer {
    fn from(info: FileInfo) -> Self {
        Self { file: info.url, size_bytes: info.size_bytes, modified_ms: info.modified_ms }
    }
}

/// Folders, and files that can hold rollouts, with size and time of the last change.
#[utoipa::path(get, path = "/browse", tag = "view", params(BrowseAsked),
    responses((status = 200, body = BrowseAnswer), (status = 403, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn browse(
    State(app): State<App>,
    Params(asked): Params<BrowseAsked>,
) -> Result<Json<BrowseAnswer>, ApiError> {
    if asked.place.is_empty() {
        let mut folders = app.views.reach.roots.clone();
        if app.views.reach.has_archive() {
            folders.extend(app.runs.all().iter().map(|yard| format!("yard://{}", yard.run_name())));
        }
        return Ok(Json(BrowseAnswer { place: None, folders, files: Vec::new(), size_bytes: 0 }));
    }
    let place = app.views.reach.resolve(&asked.place)?;
    let depth = if asked.recursive { Depth::All } else { Depth::One };
    let views = Arc::clone(&app.views);
    blocking(move || {
        let listing = views.places.browse(&place, depth)?;
        let wanted = asked.name.to_lowercase();
        let fits = |url: &str| {
            let below = url.strip_prefix(place.as_str()).unwrap_or(url);
            below.to_lowercase().contains(&wanted)
        };
        let folders = listing.folders.into_iter().filter(|url| fits(url)).collect();
        let files: Vec<FileAnswer> =
            listing.files.into_iter().filter(|file| fits(&file.url)).map(FileAnswer::from).collect();
        let size_bytes = files.iter().map(|file| file.size_bytes).sum();
        Ok(Json(BrowseAnswer { folders, files, size_bytes, place: Some(place) }))
    })
    .await
}
