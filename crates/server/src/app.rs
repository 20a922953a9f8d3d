//! What every handler can reach, and the table of routes.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::routing::get;
use axum::{Json, Router};
use rollyard_gateway::gateway::Gateway;
use rollyard_gateway::routes;
use rollyard_store::yard::Yard;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::gate::{self, GateError, GateSettings};
use crate::generators::Generators;
use crate::guard::Guard;
use crate::live::{self, Live};
use crate::metrics::Metrics;
use crate::page::Bundle;
use crate::runs::{DEFAULT_RUN, Runs};
use crate::settings::Settings;
use crate::view::{self, Views};
use crate::{api, metrics, page, session, slime};

/// Shared by all requests of a server.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) runs: Arc<Runs>,
    /// The nodes that the runs are spread over, if this server is one of many.
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) generators: Arc<Generators>,
    pub(crate) views: Arc<Views>,
    pub(crate) live: Arc<Live>,
    pub(crate) page: Arc<Bundle>,
    /// Where agents ask, if the server has an engine.
    pub(crate) gateway: Option<Arc<Gateway>>,
    /// Cancelled when the server is told to stop, so that nobody waits for groups any longer.
    pub(crate) stopping: CancellationToken,
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Rollyard",
    description = "The yard between inference engines and a trainer: rollouts in, groups out, exactly once."
))]
struct Description;

impl App {
    pub fn new(runs: Arc<Runs>, settings: Settings, stopping: CancellationToken) -> Self {
        let settings = Arc::new(settings);
        let generators = Generators::new(Arc::clone(&settings), stopping.clone());
        let views = Views::new(&runs, Arc::clone(&settings), stopping.clone());
        let page = Arc::new(Bundle::new(settings.page.clone()));
        Self {
            cluster: runs.cluster().cloned(),
            runs,
            settings,
            metrics: Arc::default(),
            generators,
            views,
            live: Arc::default(),
            page,
            gateway: None,
            stopping,
        }
    }

    /// Lets agents ask here. Sessions that were open when the server stopped go on.
    pub fn open_gateway(&mut self, settings: GateSettings) -> Result<(), GateError> {
        self.gateway = Some(gate::open(settings, &self.runs)?);
        Ok(())
    }

    /// All routes. The buffer calls also stand under `/runs/{run}`, so that a client that knows only a base
    /// URL can be pointed at any run.
    pub(crate) fn router(self, guard: &Arc<Guard>) -> Router {
        let described = OpenApiRouter::with_openapi(Description::openapi())
            .merge(slime::routes())
            .nest("/runs/{run}", slime::routes())
            .nest("/api", api::routes())
            .nest("/api", view::routes())
            .nest("/api", live::routes())
            .nest(
                "/api",
                routes::sessions(self.gateway.clone(), gate::operator(guard), self.stopping.clone()),
            )
            .nest("/api", session::routes(Arc::clone(guard)));
        let (router, mut description) = described.split_for_parts();
        name_operations(&mut description);
        let agents = self.gateway.clone().map(routes::agents).unwrap_or_default();
        router
            .route("/api/openapi.json", get(move || std::future::ready(Json(description.clone()))))
            .merge(page::routes(Arc::clone(guard)))
            .route("/metrics", get(metrics::show))
            .fallback(page::not_found)
            .method_not_allowed_fallback(page::method_not_allowed)
            .with_state(self)
            .merge(agents)
    }
}

/// Names every operation by its method and path: the names of handlers repeat, and programs that are made from the
/// description take operations of one name for the same.
fn name_operations(description: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut description.paths.paths {
        let words: Vec<&str> =
            path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let name = words.join("_");
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}_{name}"));
            }
        }
    }
}

/// The run that a request is about: the one in its path, or the default one.
pub(crate) struct OfRun(pub(crate) Yard);

impl FromRequestParts<App> for OfRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app)
            .await
            .map_err(|error| ApiError::bad("bad_path", error.to_string()))?;
        let name = params.iter().find(|(key, _)| *key == "run").map_or(DEFAULT_RUN, |(_, name)| name);
        Ok(Self(app.runs.find(name)?))
    }
}
