//! Opening a view, and what is to be said of it as a whole.

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt};
use rollyard_store::catalog::Health;
use rollyard_store::catalog::columns::{COLUMNS, Kind};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::wrappers::WatchStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, event};
use super::indexing::{IndexingAnswer, View};
use super::shelf::OfView;
use super::summary;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(open))
        .routes(routes!(show))
        .routes(routes!(progress))
        .routes(routes!(problems))
}

/// Most places say within this that they cannot be read; the others say it as they are indexed.
const FIRST_WORD_WITHIN: Duration = Duration::from_secs(2);

/// Extras are named by so many rows at the beginning; a filter may use any other name as well.
const EXTRAS_FROM_ROWS: i64 = 2_000;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// Files, folders, globs, `s3://bucket/prefix`, or `yard://RUN` for a run of this server.
    places: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ViewAnswer {
    /// Names the view in every other call; the same places have the same key.
    view: String,
    places: Vec<String>,
    indexing: IndexingAnswer,
    columns: Vec<ColumnAnswer>,
    /// Other attributes that rows have, which filters and columns can name too.
    extras: Vec<String>,
    /// Once everything is indexed.
    health: Option<HealthAnswer>,
    /// Grows when rows that were there before changed or went.
    revision: i64,
}

#[derive(Serialize, ToSchema)]
struct ColumnAnswer {
    name: &'static str,
    /// integer, real, text, flag or time (seconds since 1970).
    kind: &'static str,
    about: &'static str,
}

/// What is wrong with the rollouts, in numbers.
#[derive(Serialize, ToSchema)]
struct HealthAnswer {
    rows: u64,
    bad_rows: u64,
    copies: u64,
    unclosed: u64,
    truncated: u64,
    odd: u64,
    dead_groups: u64,
    groups: u64,
    /// Files whose last line is still being written.
    half_written: u64,
    unread_files: Vec<UnreadFile>,
}

#[derive(Serialize, ToSchema)]
struct UnreadFile {
    file: String,
    reason: String,
}

impl From<Health> for HealthAnswer {
    fn from(health: Health) -> Self {
        let Health {
            rows,
            bad_rows,
            copies,
            unclosed,
            truncated,
            odd,
            dead_groups,
            groups,
            half_written,
            unread_files,
        } = health;
        let unread_files =
            unread_files.into_iter().map(|(file, reason)| UnreadFile { file, reason }).collect();
        Self {
            rows,
            bad_rows,
            copies,
            unclosed,
            truncated,
            odd,
            dead_groups,
            groups,
            half_written,
            unread_files,
        }
    }
}

pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "integer",
        Kind::Real => "real",
        Kind::Text => "text",
        Kind::Flag => "flag",
        Kind::Time => "time",
    }
}

async fn describe(view: Arc<View>) -> Result<Json<ViewAnswer>, ApiError> {
    blocking(move || {
        let indexing = IndexingAnswer::from(&view.state());
        let connection = view.catalog().connect()?;
        let health = if indexing.done { Some(view.catalog().health()?.into()) } else { None };
        let columns = COLUMNS.iter().map(|column| ColumnAnswer {
            name: column.name,
            kind: kind_name(column.kind),
            about: column.about,
        });
        Ok(Json(ViewAnswer {
            view: view.key.clone(),
            places: view.places.clone(),
            indexing,
            columns: columns.collect(),
            extras: extras(&connection)?,
            health,
            revision: summary::mark(&connection)?.revision,
        }))
    })
    .await
}

pub(super) fn extras(connection: &rusqlite::Connection) -> Result<Vec<String>, ApiError> {
    let sql = "SELECT DISTINCT part.key FROM (SELECT extra FROM extras ORDER BY row LIMIT ?1) AS some, \
               json_each(some.extra) AS part ORDER BY 1";
    let mut statement = connection.prepare_cached(sql)?;
    let names: rusqlite::Result<Vec<String>> =
        statement.query_map([EXTRAS_FROM_ROWS], |row| row.get(0))?.collect();
    Ok(names?)
}

/// Open places as one view, and begin to index what is new in them. The same places are the same view, and opening
/// them again joins the indexing that is under way.
#[utoipa::path(post, path = "/open", tag = "view", request_body = Open,
    responses((status = 200, body = ViewAnswer), (status = 400, body = ErrorAnswer), (status = 403, body = ErrorAnswer),
        (status = 404, body = ErrorAnswer), (status = 409, body = ErrorAnswer)))]
async fn open(State(app): State<App>, Fields(asked): Fields<Open>) -> Result<Json<ViewAnswer>, ApiError> {
    let view = app.views.open(&asked.places).await?;
    let mut job = view.index();
    let heard = job.wait_for(|indexing| !indexing.is_running || indexing.progress.files > 0);
    let first = tokio::time::timeout(FIRST_WORD_WITHIN, heard).await;
    let error = first.ok().and_then(Result::ok).filter(|indexing| !indexing.is_running);
    let error = error.and_then(|indexing| indexing.error.clone());
    if let Some(error) = error {
        app.views.forget(&view);
        return Err(error);
    }
    let (views, opened) = (Arc::clone(&app.views), Arc::clone(&view));
    blocking(move || views.remember(&opened)).await?;
    describe(view).await
}

/// A view: its places, how far indexing is, its columns, its health.
#[utoipa::path(get, path = "/{view}", tag = "view", params(("view" = String, Path)),
    responses((status = 200, body = ViewAnswer), (status = 404, body = ErrorAnswer)))]
async fn show(OfView(view): OfView) -> Result<Json<ViewAnswer>, ApiError> {
    describe(view).await
}

/// Server-sent events of indexing: `progress` a few times a second, then `done` or `error`, and the end.
#[utoipa::path(get, path = "/{view}/progress", tag = "view", params(("view" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = IndexingAnswer)))]
async fn progress(
    State(app): State<App>,
    OfView(view): OfView,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let states = WatchStream::new(view.watch()).scan(false, |ended, indexing| {
        let was_ended = std::mem::replace(ended, !indexing.is_running);
        let answer = IndexingAnswer::from(&indexing);
        let name = match (indexing.is_running, &indexing.error) {
            (true, _) => "progress",
            (false, Some(_)) => "error",
            (false, None) => "done",
        };
        std::future::ready((!was_ended).then(|| Ok(event(name, &answer))))
    });
    Sse::new(states.take_until(app.stopping.cancelled_owned())).keep_alive(KeepAlive::default())
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ProblemsAsked {
    #[serde(default)]
    offset: u32,
    /// At most 1,000; 100 if left out.
    #[serde(default = "hundred")]
    limit: u32,
}

fn hundred() -> u32 {
    100
}

#[derive(Serialize, ToSchema)]
struct ProblemsAnswer {
    total: u64,
    problems: Vec<ProblemAnswer>,
}

#[derive(Serialize, ToSchema)]
struct ProblemAnswer {
    /// `rollouts/{id}/raw` has its bytes.
    id: String,
    file: String,
    line: i64,
    problem: String,
}

/// The rows that could not be read, and why.
#[utoipa::path(get, path = "/{view}/problems", tag = "view", params(("view" = String, Path), ProblemsAsked),
    responses((status = 200, body = ProblemsAnswer), (status = 400, body = ErrorAnswer)))]
async fn problems(
    OfView(view): OfView,
    Params(asked): Params<ProblemsAsked>,
) -> Result<Json<ProblemsAnswer>, ApiError> {
    super::rows::check_limit(u64::from(asked.limit))?;
    blocking(move || {
        let connection = view.catalog().connect()?;
        let total = connection
            .query_row("SELECT count(*) FROM rows WHERE bad = 1", [], |row| row.get::<_, i64>(0))?;
        let sql = "SELECT rows.id, sources.url, rows.line, coalesce(problems.problem, '') FROM rows \
                   JOIN sources USING (source) LEFT JOIN problems ON problems.row = rows.row \
                   WHERE rows.bad = 1 ORDER BY rows.row LIMIT ?1 OFFSET ?2";
        let mut statement = connection.prepare(sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            let id = summary::json(row.get_ref(0)?, false);
            let id = id.as_str().unwrap_or_default().to_owned();
            Ok(ProblemAnswer { id, file: row.get(1)?, line: row.get(2)?, problem: row.get(3)? })
        };
        let problems: rusqlite::Result<Vec<_>> =
            statement.query_map([asked.limit, asked.offset], read)?.collect();
        Ok(Json(ProblemsAnswer { total: total.unsigned_abs(), problems: problems? }))
    })
    .await
}
