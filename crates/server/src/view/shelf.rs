//! The views that are open, and what is kept beside them.
//!
//! A view holds columns in memory, so only the last few stay. One that was dropped is opened again when its key is
//! asked for: the places of every key are remembered in the data folder.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use rollyard_store::catalog::Catalog;
use rollyard_store::places::Places;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::blocking;
use super::grade::Jobs;
use super::indexing::View;
use super::notes::Notes;
use super::place::{self, Reach};
use super::saved::Saved;
use super::sidecar::{Sidecar, Told};
use crate::App;
use crate::error::ApiError;
use crate::runs::Runs;
use crate::settings::Settings;

/// Columns of a million rollouts take some hundred megabytes.
const OPEN_MAX: usize = 8;

/// Places of one view.
const PLACES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Views {
    pub(super) settings: Arc<Settings>,
    pub(super) reach: Reach,
    pub(super) places: Places,
    pub(super) notes: Notes,
    pub(super) saved: Saved,
    pub(super) jobs: Jobs,
    pub(super) stopping: CancellationToken,
    /// What goes on beside requests.
    pub(super) tasks: TaskTracker,
    cache: PathBuf,
    open: Mutex<HashMap<String, Shelved>>,
    /// `{"view": KEY, "places": […]}` for every key that was ever opened.
    remembered: Sidecar<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered(HashMap<String, Vec<String>>);

impl Told for Remembered {
    fn hear(&mut self, line: &Value) {
        let places = line.get("places").and_then(|places| Vec::<String>::deserialize(places).ok());
        if let (Some(key), Some(places)) = (line.get("view").and_then(Value::as_str), places) {
            self.0.insert(key.to_owned(), places);
        }
    }
}

#[derive(Debug)]
struct Shelved {
    view: Arc<View>,
    used: Instant,
}

impl Views {
    pub(crate) fn new(runs: &Runs, settings: Arc<Settings>, stopping: CancellationToken) -> Arc<Self> {
        let dir = runs.dir().join("view");
        let reach = Reach::new(&settings, runs.archive().cloned(), &dir.join("example"));
        Arc::new(Self {
            places: reach.places(),
            reach,
            notes: Notes::new(&dir),
            saved: Saved::new(&dir),
            jobs: Jobs::new(&dir),
            cache: settings.cache.clone().unwrap_or_else(Catalog::default_cache),
            open: Mutex::default(),
            remembered: Sidecar::new(dir.join("places.jsonl")),
            settings,
            stopping,
            tasks: TaskTracker::new(),
        })
    }

    /// Goes on with what was under way when the server stopped.
    pub(crate) async fn begin(self: Arc<Self>) {
        Jobs::resume(&self).await;
    }

    /// Waits for what goes on, which ends because the server does.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The view of these places, as they were said; the same view for the same places.
    pub(super) async fn open(self: &Arc<Self>, said: &[String]) -> Result<Arc<View>, ApiError> {
        if said.is_empty() {
            return Err(ApiError::wrong_field(
                "places",
                "[]",
                "at least one file, folder, glob, s3:// or yard://RUN",
            ));
        }
        if said.len() > PLACES_MAX {
            let message = format!("at most {PLACES_MAX}; name a folder or a glob instead");
            return Err(ApiError::wrong_field("places", format_args!("a list of {}", said.len()), &message));
        }
        let resolved: Result<Vec<String>, ApiError> =
            said.iter().map(|place| self.reach.resolve(place)).collect();
        let mut places = resolved?;
        places.sort_unstable();
        places.dedup();
        let key = place::key(&places);
        match self.shelved(&key) {
            Some(view) => Ok(view),
            None => self.shelve(key, places).await,
        }
    }

    pub(super) async fn find(self: &Arc<Self>, key: &str) -> Result<Arc<View>, ApiError> {
        if let Some(view) = self.shelved(key) {
            return Ok(view);
        }
        let (views, wanted) = (Arc::clone(self), key.to_owned());
        let places = blocking(move || views.remembered.ask(|known| known.0.get(&wanted).cloned())).await?;
        let Some(places) = places else {
            let message = format!("there is no view {key:?}; open its places with POST /api/view/open");
            return Err(ApiError::new(StatusCode::NOT_FOUND, "view_unknown", message));
        };
        let view = self.shelve(key.to_owned(), places).await?;
        view.index();
        Ok(view)
    }

    /// Keeps the places of a view beyond the life of this server.
    pub(super) fn remember(&self, view: &View) -> Result<(), ApiError> {
        if self.remembered.ask(|known| known.0.contains_key(&view.key))? {
            return Ok(());
        }
        self.remembered.append(&json!({"view": view.key, "places": view.places}))
    }

    /// A view that turned out to be none.
    pub(super) fn forget(&self, view: &View) {
        view.cancel();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&view.key);
    }

    fn shelved(&self, key: &str) -> Option<Arc<View>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let shelved = open.get_mut(key)?;
        shelved.used = Instant::now();
        Some(Arc::clone(&shelved.view))
    }

    async fn shelve(self: &Arc<Self>, key: String, places: Vec<String>) -> Result<Arc<View>, ApiError> {
        let views = Arc::clone(self);
        blocking(move || {
            // The roots may be others than when the catalog was made.
            for place in &places {
                views.places.admit(place)?;
            }
            let catalog = Catalog::open(views.places.clone(), &places, &views.cache)?;
            let view = Arc::new(View::new(key, places, catalog, views.stopping.clone(), views.tasks.clone()));
            Ok(views.put(view))
        })
        .await
    }

    /// Two may have opened the same places; the first one's view is both's.
    fn put(&self, view: Arc<View>) -> Arc<View> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = open.get(&view.key) {
            return Arc::clone(&first.view);
        }
        while open.len() >= OPEN_MAX {
            let idle = open.iter().filter(|(_, shelved)| !shelved.view.is_followed());
            let Some(oldest) = idle.min_by_key(|(_, shelved)| shelved.used).map(|(key, _)| key.clone())
            else {
                break;
            };
            if let Some(dropped) = open.remove(&oldest) {
                dropped.view.cancel();
            }
        }
        open.insert(view.key.clone(), Shelved { view: Arc::clone(&view), used: Instant::now() });
        view
    }
}

/// The view in the path of a request.
pub(super) struct OfView(pub(super) Arc<View>);

impl FromRequestParts<App> for OfView {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app)
            .await
            .map_err(|error| ApiError::bad("bad_path", error.to_string()))?;
        let key = params.iter().find(|(key, _)| *key == "view").map_or("", |(_, key)| key);
        Ok(Self(app.views.find(key).await?))
    }
}
