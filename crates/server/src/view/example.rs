//! A run to look at for who has none yet.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rollyard_store::example;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::blocking;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(write))
}

#[derive(Serialize, ToSchema)]
struct ExampleAnswer {
    /// Can be opened as any other place.
    place: String,
}

/// Writes the example run into the data folder of the server, unless it is there.
#[utoipa::path(post, path = "/example", tag = "view",
    responses((status = 200, body = ExampleAnswer), (status = 500, body = ErrorAnswer)))]
async fn write(State(app): State<App>) -> Result<Json<ExampleAnswer>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || {
        let dir = &views.reach.example;
        example::write(dir).map_err(|error| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "example", error.to_string())
        })?;
        Ok(Json(ExampleAnswer { place: dir.display().to_string() }))
    })
    .await
}
