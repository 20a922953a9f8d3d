//! New rows, as they are written.
//!
//! As long as somebody listens to a view, its files are looked at twice a second, once for all who listen.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt};
use rollyard_store::catalog::RowNo;
use rollyard_store::query::Choice;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, error_event, event, words};
use super::indexing::{Mark, View};
use super::rows::{RowAnswer, SHOWN};
use super::shelf::OfView;
use super::summary::{Summary, summary};
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(tail))
}

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A listing that takes long is not repeated at once.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(10);

/// Rows of one event.
const ROWS_AT_ONCE: usize = 200;

const WAITING_MAX: usize = 16;

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct TailAsked {
    filter: String,
    /// Names by comma.
    columns: String,
    /// The id of the last event that was seen; rows from now on if left out.
    after: String,
}

#[derive(Serialize, ToSchema)]
struct NewRows {
    columns: Vec<String>,
    rows: Vec<RowAnswer>,
}

/// Server-sent events of new rows that a filter lets through: `rows`, and `reset` when earlier rows changed or went,
/// so that what is on screen has to be asked for anew. The id of an event is a place to go on from.
#[utoipa::path(get, path = "/{view}/tail", tag = "view", params(("view" = String, Path), TailAsked),
    responses((status = 200, content_type = "text/event-stream", body = NewRows), (status = 400, body = ErrorAnswer)))]
async fn tail(
    State(app): State<App>,
    OfView(view): OfView,
    Params(asked): Params<TailAsked>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    // A browser that connects again says so in a header.
    let again = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = again.map_or(asked.after.clone(), str::to_owned);
    let after = if after.is_empty() { None } else { Some(parse_mark(&after)?) };
    let (looked, filter) = (Arc::clone(&view), asked.filter.clone());
    let seen = blocking(move || {
        looked.query.check(&filter)?;
        after.map_or_else(|| looked.mark(), Ok)
    })
    .await?;
    let columns = words(&asked.columns);
    let columns = if columns.is_empty() { SHOWN.map(str::to_owned).to_vec() } else { columns };
    let (sender, events) = mpsc::channel(WAITING_MAX);
    let tasks = view.tasks.clone();
    tasks.spawn(Listener { view, filter: asked.filter, columns, seen }.listen(sender));
    let told = ReceiverStream::new(events).map(Ok).take_until(app.stopping.clone().cancelled_owned());
    Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}

fn parse_mark(text: &str) -> Result<Mark, ApiError> {
    let parsed = text.split_once('.').and_then(|(revision, row)| {
        Some(Mark { revision: revision.parse().ok()?, last_row: row.parse().ok()? })
    });
    let expected = "the id of an event of this call, such as 3.1200";
    parsed.ok_or_else(|| ApiError::wrong_field("after", format_args!("{text:?}"), expected))
}

fn with_id(told: Event, mark: Mark) -> Event {
    told.id(format!("{}.{}", mark.revision, mark.last_row))
}

struct Listener {
    view: Arc<View>,
    filter: String,
    columns: Vec<String>,
    seen: Mark,
}

impl Listener {
    async fn listen(mut self, to: mpsc::Sender<Event>) {
        let _following = Follow::begin(&self.view);
        let mut changes = self.view.watch();
        let mut said = None;
        if to.send(with_id(event("begin", &self.columns), self.seen)).await.is_err() {
            return;
        }
        loop {
            let error = changes.borrow_and_update().error.clone();
            let message = error.as_ref().map(|error| error.message.clone());
            if let Some(error) = error.filter(|_| message != said)
                && to.send(error_event(&error)).await.is_err()
            {
                return;
            }
            said = message;
            let (listener, news) = match blocking(move || self.look()).await {
                Ok(seen) => seen,
                Err(error) => return drop(to.send(error_event(&error)).await),
            };
            self = listener;
            for news in news {
                if to.send(news).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = to.closed() => return,
                () = self.view.stopping.cancelled() => return,
            }
        }
    }

    /// What is new since last time. Reads the catalog.
    fn look(mut self) -> Result<(Self, Vec<Event>), ApiError> {
        let mark = self.view.mark()?;
        if mark == self.seen {
            return Ok((self, Vec::new()));
        }
        let seen = std::mem::replace(&mut self.seen, mark);
        if mark.revision != seen.revision {
            return Ok((self, vec![with_id(event("reset", &()), mark)]));
        }
        let rows = self.view.query.rows(&Choice { filter: self.filter.clone(), sort: Vec::new() })?;
        let mut new: Vec<RowNo> =
            rows.iter().copied().filter(|row| row.0 > seen.last_row && row.0 <= mark.last_row).collect();
        new.sort_unstable();
        let connection = self.view.catalog().connect()?;
        let mut events = Vec::new();
        for some in new.chunks(ROWS_AT_ONCE) {
            let mut rows = Vec::new();
            for row in some {
                rows.extend(summary(&connection, *row)?.map(|row| self.row(row)));
            }
            let last_row = some.last().map_or(mark.last_row, |row| row.0);
            events.push(with_id(
                event("rows", &NewRows { columns: self.columns.clone(), rows }),
                Mark { last_row, ..mark },
            ));
        }
        Ok((self, events))
    }

    fn row(&self, summary: Summary) -> RowAnswer {
        let values = self.columns.iter().map(|column| summary.value(column)).collect::<Vec<Value>>();
        RowAnswer { id: summary.id, values }
    }
}

/// Counts somebody who listens, for as long as it lives.
struct Follow(Arc<View>);

impl Follow {
    fn begin(view: &Arc<View>) -> Self {
        let mut following = view.following.lock().unwrap_or_else(PoisonError::into_inner);
        following.listeners += 1;
        if !std::mem::replace(&mut following.is_polled, true) {
            view.tasks.spawn(poll(Arc::clone(view)));
        }
        Self(Arc::clone(view))
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.0.following.lock().unwrap_or_else(PoisonError::into_inner).listeners -= 1;
    }
}

/// Looks at the files for all who listen, until nobody does.
async fn poll(view: Arc<View>) {
    loop {
        let began = Instant::now();
        // Listeners see the error in the view's state.
        let _told = view.refresh().await;
        let pause = began.elapsed().clamp(LOOK_EVERY, LOOK_EVERY_MAX);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = view.stopping.cancelled() => {}
        }
        let mut following = view.following.lock().unwrap_or_else(PoisonError::into_inner);
        if following.listeners == 0 || view.stopping.is_cancelled() {
            following.is_polled = false;
            return;
        }
    }
}
