//! Text search over bodies, as it goes.

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt};
use rollyard_store::query::{Found, Hit, Pattern, Scanned, Wanted};
use rollyard_store::records::Channel;
use rusqlite::Connection;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, error_event, event, words};
use super::indexing::View;
use super::shelf::OfView;
use super::summary::summary;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search, search_by_post))
}

/// Rows with hits that are told; who wants more narrows the filter.
const HITS_MAX: u64 = 10_000;

/// Events that may wait for a slow listener.
const WAITING_MAX: usize = 64;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchAsked {
    text: String,
    /// The text is a regular expression.
    #[serde(default, deserialize_with = "flag")]
    regex: bool,
    /// Upper and lower case differ.
    #[serde(default, deserialize_with = "flag")]
    case: bool,
    /// By comma: system, user, assistant, reasoning, tool_call, tool_result; all if left out.
    #[serde(default)]
    channel: String,
    /// Only rows that this lets through.
    #[serde(default)]
    filter: String,
    /// Rows with hits after which it stops, at most 10,000.
    #[serde(default = "hits_max")]
    limit: u64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ManyAsked {
    /// A rollout has to have all of these.
    #[serde(default)]
    all: Vec<PatternAsked>,
    /// And one of these, if there are any.
    #[serde(default)]
    any: Vec<PatternAsked>,
    /// And none of these.
    #[serde(default)]
    none: Vec<PatternAsked>,
    #[serde(default)]
    filter: String,
    #[serde(default = "hits_max")]
    limit: u64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PatternAsked {
    text: String,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    case: bool,
    /// All if left out.
    #[serde(default)]
    channels: Vec<String>,
}

fn hits_max() -> u64 {
    HITS_MAX
}

/// In URLs people write 1 as well as true.
pub(super) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match String::deserialize(from)?.as_str() {
        "" | "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        other => Err(serde::de::Error::custom(format!("{other:?} is neither true nor false"))),
    }
}

#[derive(Serialize, ToSchema)]
struct HitAnswer {
    id: String,
    #[schema(value_type = Object)]
    step: Value,
    #[schema(value_type = Object)]
    reward: Value,
    message: usize,
    channel: &'static str,
    /// Characters of the message's text in that channel.
    start: usize,
    end: usize,
    /// Some text around it.
    snippet: String,
    /// Where the hit stands in it, in bytes.
    at: [usize; 2],
    /// Hits in this row; only the first is told in detail.
    count: usize,
}

#[derive(Serialize, ToSchema)]
struct ScannedAnswer {
    rows_done: u64,
    rows: u64,
    bytes_done: u64,
    bytes: u64,
    hits: u64,
    /// It stopped at the limit, and there may be more.
    more: bool,
}

impl ScannedAnswer {
    fn of(scanned: Scanned, more: bool) -> Self {
        let Scanned { rows_done, rows, bytes_done, bytes, hits } = scanned;
        Self { rows_done, rows, bytes_done, bytes, hits, more }
    }
}

pub(super) fn channels(names: &[String]) -> Result<Vec<Channel>, ApiError> {
    let known = || Channel::ALL.map(Channel::name).join(", ");
    let channel = |name: &String| {
        Channel::named(name).ok_or_else(|| {
            ApiError::wrong_field("channel", format_args!("{name:?}"), &format!("of {}", known()))
        })
    };
    names.iter().filter(|name| *name != "all").map(channel).collect()
}

fn pattern(asked: PatternAsked) -> Result<Wanted, ApiError> {
    if asked.text.is_empty() {
        return Err(ApiError::wrong_field("text", "empty", "at least one character"));
    }
    if asked.regex
        && let Err(error) = regex::Regex::new(&asked.text)
    {
        let message = format!("{:?} is not a regular expression: {error}", asked.text);
        return Err(ApiError { field: Some("text".to_owned()), ..ApiError::bad("bad_regex", message) });
    }
    let channels = channels(&asked.channels)?;
    Ok(Wanted::Has(Pattern { text: asked.text, is_regex: asked.regex, ignore_case: !asked.case, channels }))
}

impl ManyAsked {
    fn wanted(self) -> Result<Wanted, ApiError> {
        let patterns =
            |asked: Vec<PatternAsked>| asked.into_iter().map(pattern).collect::<Result<Vec<_>, _>>();
        let mut all = patterns(self.all)?;
        let any = patterns(self.any)?;
        if !any.is_empty() {
            all.push(Wanted::Any(any));
        }
        all.extend(patterns(self.none)?.into_iter().map(|none| Wanted::Not(Box::new(none))));
        Ok(Wanted::All(all))
    }
}

/// Look through the bodies of a filter's rows: events `hit`, `progress`, then `done` or `error`. Closing the
/// connection ends the search.
#[utoipa::path(get, path = "/{view}/search", tag = "view", params(("view" = String, Path), SearchAsked),
    responses((status = 200, content_type = "text/event-stream", body = HitAnswer), (status = 400, body = ErrorAnswer)))]
async fn search(
    State(app): State<App>,
    OfView(view): OfView,
    Params(asked): Params<SearchAsked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let SearchAsked { text, regex, case, channel, filter, limit } = asked;
    let all = vec![PatternAsked { text, regex, case, channels: words(&channel) }];
    stream(&app, view, ManyAsked { all, any: Vec::new(), none: Vec::new(), filter, limit }).await
}

/// The same with several patterns: all of some, one of some, none of some.
#[utoipa::path(post, path = "/{view}/search", tag = "view", params(("view" = String, Path)), request_body = ManyAsked,
    responses((status = 200, content_type = "text/event-stream", body = HitAnswer), (status = 400, body = ErrorAnswer)))]
async fn search_by_post(
    State(app): State<App>,
    OfView(view): OfView,
    Fields(asked): Fields<ManyAsked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    stream(&app, view, asked).await
}

async fn stream(
    app: &App,
    view: Arc<View>,
    asked: ManyAsked,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
    if asked.all.is_empty() && asked.any.is_empty() {
        return Err(ApiError::wrong_field("all", "[]", "at least one pattern, here or in any"));
    }
    if !(1..=HITS_MAX).contains(&asked.limit) {
        return Err(ApiError::wrong_field("limit", asked.limit, &format!("1 to {HITS_MAX}")));
    }
    let (filter, limit) = (asked.filter.clone(), asked.limit);
    let wanted = asked.wanted()?;
    let mut scan = Scan { view, filter, wanted, limit, told: 0 };
    // What cannot be searched for is said as an answer, not in the middle of a stream.
    let (checked, filter) = (Arc::clone(&scan.view), scan.filter.clone());
    blocking(move || Ok(checked.query.check(&filter)?)).await?;
    let (sender, events) = mpsc::channel(WAITING_MAX);
    let tasks = scan.view.tasks.clone();
    tasks.spawn_blocking(move || {
        let last = match scan.run(&sender) {
            Ok(done) => event("done", &done),
            Err(error) => error_event(&error),
        };
        // Whoever closed the connection does not hear it.
        let _closed = sender.blocking_send(last);
    });
    let told = ReceiverStream::new(events).map(Ok).take_until(app.stopping.clone().cancelled_owned());
    Ok(Sse::new(told).keep_alive(KeepAlive::default()))
}

struct Scan {
    view: Arc<View>,
    filter: String,
    wanted: Wanted,
    limit: u64,
    told: u64,
}

impl Scan {
    fn run(&mut self, to: &mpsc::Sender<Event>) -> Result<ScannedAnswer, ApiError> {
        let connection = self.view.catalog().connect()?;
        let mut broken = None;
        let view = Arc::clone(&self.view);
        let (filter, wanted) = (self.filter.clone(), self.wanted.clone());
        let scanned = view.query.search_for(&filter, &wanted, &mut |found| {
            let told = match found {
                Found::Progress(scanned) => Ok(event("progress", &ScannedAnswer::of(scanned, false))),
                Found::Hit(hit) => self.hit(&connection, hit),
            };
            match told {
                Ok(event) => {
                    let is_heard = to.blocking_send(event).is_ok();
                    if is_heard && self.told < self.limit {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                }
                Err(error) => {
                    broken = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        broken.map_or(Ok(ScannedAnswer::of(scanned, self.told >= self.limit)), Err)
    }

    fn hit(&mut self, connection: &Connection, hit: Hit) -> Result<Event, ApiError> {
        self.told += 1;
        let of_row = summary(connection, hit.row)?;
        let column =
            |name: &str| of_row.as_ref().and_then(|row| row.columns.get(name)).cloned().unwrap_or_default();
        let (step, reward) = (column("step"), column("reward"));
        Ok(event(
            "hit",
            &HitAnswer {
                step,
                reward,
                id: of_row.map(|row| row.id).unwrap_or_default(),
                message: hit.message,
                channel: hit.channel.name(),
                start: hit.range.start,
                end: hit.range.end,
                snippet: hit.snippet,
                at: [hit.in_snippet.start, hit.in_snippet.end],
                count: hit.count_in_row,
            },
        ))
    }
}
