//! What happens, as it happens.

use axum::extract::State;
use axum::response::sse::{Event as Sse, KeepAlive, Sse as SseAnswer};
use futures_util::stream::{Stream, StreamExt};
use rollyard_store::yard::News;
use std::convert::Infallible;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::app::OfRun;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Server-sent events of everything that becomes durable in a run. The id of an event is its record number;
/// a listener that falls behind gets a `missed` event with the number of records it did not see.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "events", params(("run" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn events(
    State(app): State<App>,
    OfRun(yard): OfRun,
) -> SseAnswer<impl Stream<Item = Result<Sse, Infallible>>> {
    let news = BroadcastStream::new(yard.news());
    let told = news.flat_map(|news| futures_util::stream::iter(tell(news))).map(Ok);
    SseAnswer::new(told.take_until(app.stopping.cancelled_owned())).keep_alive(KeepAlive::default())
}

fn tell(news: Result<News, BroadcastStreamRecvError>) -> Vec<Sse> {
    match news {
        Err(BroadcastStreamRecvError::Lagged(missed)) => {
            vec![Sse::default().event("missed").data(missed.to_string())]
        }
        Ok(News { seq, events, .. }) => events
            .iter()
            .map(|event| {
                let named = serde_json::to_value(event).unwrap_or_default();
                let kind = named.as_object().and_then(|fields| fields.keys().next().cloned());
                let kind = kind.unwrap_or_else(|| "Event".to_owned());
                let data = named.get(&kind).cloned().unwrap_or_default();
                Sse::default().id(seq.to_string()).event(kind).data(data.to_string())
            })
            .collect(),
    }
}
