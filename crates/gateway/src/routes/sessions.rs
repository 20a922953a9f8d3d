//! Sessions for those who open, reward and watch them.
//!
//! Whoever runs the server may open sessions and look at all of them. A reward needs the session's `reward_key`, or the
//! server's own token: where the server has none, everybody on the machine could write rewards, the agents included.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::key;
use crate::gateway::{Gateway, GatewayCounts, SessionKeys};
use crate::live::Live;
use crate::look::{News, SessionRow, SessionView};
use crate::refusal::{Kind, Refusal};
use crate::session::opening::Opening;

/// Knows whether a request is from whoever runs the server, by a token that no agent has.
#[derive(Clone)]
pub struct Operator(pub Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>);

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operator")
    }
}

#[derive(Clone, Debug)]
struct Desk {
    gateway: Option<Arc<Gateway>>,
    operator: Operator,
    /// Streams end then: those who watch would keep a server from stopping.
    stopping: CancellationToken,
}

/// Under `/api`. A server without an engine has no sessions, and says so.
pub fn sessions<S: Clone + Send + Sync + 'static>(
    gateway: Option<Arc<Gateway>>,
    operator: Operator,
    stopping: CancellationToken,
) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(open, list))
        .routes(routes!(view))
        .routes(routes!(events))
        .routes(routes!(reward))
        .routes(routes!(end))
        .routes(routes!(abandon))
        .routes(routes!(export))
        .with_state(Desk { gateway, operator, stopping })
}

/// What is said when a session was opened.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Granted {
    #[serde(flatten)]
    keys: SessionKeys,
    /// For `OPENAI_BASE_URL`.
    base_url: String,
    /// For `ANTHROPIC_BASE_URL`.
    anthropic_base_url: String,
    model: String,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Listed {
    sessions: Vec<SessionRow>,
    /// Nothing where the server has no engine.
    counts: Option<GatewayCounts>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Rewarding {
    reward: f64,
    /// The name of an answer, as the agent was told it; what the session ends with, if left out.
    interaction_id: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Ending {
    /// The same as setting it first.
    reward: Option<f64>,
}

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Abandoning {
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default)]
struct Exporting {
    /// `concat` or `individual`; the session's own, if left out.
    style: Option<crate::session::export::Style>,
    discount: Option<f64>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = match self.kind {
            Kind::BadRequest | Kind::ContextLength => "bad_request",
            Kind::Unauthorized => "unauthorized",
            Kind::Forbidden => "forbidden",
            Kind::NotFound => "not_found",
            Kind::Conflict => "session_over",
            Kind::TooLarge => "too_large",
            Kind::NoCapacity => "no_capacity",
            Kind::Internal => "internal",
            Kind::Engine | Kind::Unavailable => "engine",
        };
        let body = json!({"error": {"code": code, "message": self.message}});
        let mut response = (status, Json(body)).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response
    }
}

impl Desk {
    fn gateway(&self) -> Result<&Arc<Gateway>, Refusal> {
        self.gateway.as_ref().ok_or_else(|| {
            let message =
                "this server has no engine that agents could ask; start it with --engine and --tokenizer";
            Refusal::new(Kind::NotFound, message)
        })
    }

    fn find(&self, session: &str) -> Result<Arc<Live>, Refusal> {
        self.gateway()?.find(session).ok_or_else(|| {
            Refusal::new(
                Kind::NotFound,
                format!("there is no session {session:?}; it may have been closed long ago"),
            )
        })
    }
}

/// A session that the request may judge: by its `reward_key`, or as whoever runs the server.
struct Judged {
    gateway: Arc<Gateway>,
    live: Arc<Live>,
}

impl FromRequestParts<Desk> for Judged {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Refusal> {
        let Path(session) = Path::<String>::from_request_parts(parts, desk)
            .await
            .map_err(|error| Refusal::new(Kind::BadRequest, error.to_string()))?;
        let gateway = Arc::clone(desk.gateway()?);
        if (desk.operator.0)(&parts.headers) {
            return Ok(Self { gateway, live: desk.find(&session)? });
        }
        let Some(key) = key(&parts.headers) else {
            let message = "rewards need the session's reward_key, as `Authorization: Bearer …`";
            return Err(Refusal::new(Kind::Unauthorized, message));
        };
        let live = gateway.by_reward_key(key)?;
        if *live.id == *session {
            return Ok(Self { gateway, live });
        }
        Err(Refusal::new(Kind::Forbidden, format!("this reward_key is not that of session {session:?}")))
    }
}

fn read<T: Default + for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    strict(body)
}

fn strict<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Refusal> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        Refusal::field(path.clone(), format!("field {path:?}: {}", error.inner()))
    })
}

/// Opens a session: one rollout of a run, with a key for its agent and one for its judge.
#[utoipa::path(post, path = "/sessions", tag = "sessions", request_body = Opening,
    responses((status = 200, body = Granted), (status = 429, description = "No room for another rollout now.")))]
async fn open(
    State(desk): State<Desk>,
    headers: HeaderMap,
    body: bytes::Bytes,
) -> Result<Json<Granted>, Refusal> {
    let opening: Opening = read(&body)?;
    let gateway = desk.gateway()?;
    let keys = gateway.open(opening).await?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1");
    let scheme = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok()).unwrap_or("http");
    let base = format!("{scheme}://{host}");
    let model = gateway.model.name.clone();
    Ok(Json(Granted { keys, base_url: format!("{base}/v1"), anthropic_base_url: base, model }))
}

/// All sessions that are open or were closed lately, the newest first.
#[utoipa::path(get, path = "/sessions", tag = "sessions", responses((status = 200, body = Listed)))]
async fn list(State(desk): State<Desk>) -> Json<Listed> {
    let gateway = desk.gateway.as_ref();
    Json(Listed {
        sessions: gateway.map(|gateway| gateway.rows()).unwrap_or_default(),
        counts: gateway.map(|gateway| gateway.counts()),
    })
}

/// One session with all its turns.
#[utoipa::path(get, path = "/sessions/{session}", tag = "sessions", params(("session" = String, Path)),
    responses((status = 200, body = SessionView)))]
async fn view(State(desk): State<Desk>, Path(session): Path<String>) -> Result<Json<SessionView>, Refusal> {
    Ok(Json(desk.find(&session)?.view()))
}

/// One session as it goes on: first all of it as event `whole`, then each [`News`] as event `news`.
#[utoipa::path(get, path = "/sessions/{session}/events", tag = "sessions", params(("session" = String, Path)),
    responses((status = 200, description = "Server-sent events.", body = News, content_type = "text/event-stream")))]
async fn events(State(desk): State<Desk>, Path(session): Path<String>) -> Result<Response, Refusal> {
    let live = desk.find(&session)?;
    let news = live.watch();
    let body = stream::unfold((live, news, true), |(live, mut news, is_first)| async move {
        let mut whole = is_first;
        let text = loop {
            if whole {
                break event("whole", &live.view());
            }
            match news.recv().await {
                Ok(said) => break event("news", &said),
                // Too far behind: all of it once more.
                Err(RecvError::Lagged(_)) => whole = true,
                Err(RecvError::Closed) => return None,
            }
        };
        Some((Ok::<_, Infallible>(text), (live, news, false)))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, Body::from_stream(body.take_until(desk.stopping.cancelled_owned()))).into_response())
}

fn event(name: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("what is shown can be written");
    format!("event: {name}\ndata: {json}\n\n")
}

/// Sets a reward: of one answer, or of what the session ends with.
#[utoipa::path(post, path = "/sessions/{session}/reward", tag = "sessions", params(("session" = String, Path)),
    request_body = Rewarding, responses((status = 200, body = SessionRow)))]
async fn reward(Judged { gateway, live }: Judged, body: bytes::Bytes) -> Result<Json<SessionRow>, Refusal> {
    let Rewarding { reward, interaction_id } = strict(&body)?;
    gateway.reward(&live, interaction_id.as_deref(), reward).await?;
    Ok(Json(live.row()))
}

/// Ends a session: its rollout goes to the yard. May be repeated.
#[utoipa::path(post, path = "/sessions/{session}/end", tag = "sessions", params(("session" = String, Path)),
    request_body = Ending, responses((status = 200, body = SessionRow)))]
async fn end(Judged { gateway, live }: Judged, body: bytes::Bytes) -> Result<Json<SessionRow>, Refusal> {
    let Ending { reward } = read(&body)?;
    gateway.finish(&live, reward).await?;
    Ok(Json(live.row()))
}

/// Gives a session up: it leaves no rollout. May be repeated.
#[utoipa::path(post, path = "/sessions/{session}/abandon", tag = "sessions", params(("session" = String, Path)),
    request_body = Abandoning, responses((status = 200, body = SessionRow)))]
async fn abandon(Judged { gateway, live }: Judged, body: bytes::Bytes) -> Result<Json<SessionRow>, Refusal> {
    let Abandoning { reason } = read(&body)?;
    gateway.abandon(&live, reason.as_deref().unwrap_or("it was given up")).await?;
    gateway.hand_on(&live).await;
    Ok(Json(live.row()))
}

/// The session as rollouts, as they would go to the yard.
#[utoipa::path(get, path = "/sessions/{session}/export", tag = "sessions",
    params(("session" = String, Path), Exporting), responses((status = 200, body = Value)))]
async fn export(Judged { live, .. }: Judged, Query(how): Query<Exporting>) -> Result<Response, Refusal> {
    let style = how.style.unwrap_or(live.opening.style);
    let discount = how.discount.unwrap_or(live.opening.discount);
    let items = live.items(style, discount).map_err(|message| Refusal::new(Kind::Internal, message))?;
    let list = [b"[".as_slice(), &items.join(b",".as_slice()), b"]"].concat();
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], list).into_response())
}
