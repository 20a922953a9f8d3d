//! What an agent sees: `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` lead here.

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use std::sync::Arc;

use super::body::{streamed, whole};
use crate::answer::Hints;
use crate::dialect::{self, Dialect};
use crate::gateway::Gateway;
use crate::live::Live;
use crate::refusal::{Kind, Refusal};

const CALLS: [(&str, Dialect); 4] = [
    ("/chat/completions", Dialect::Chat),
    ("/completions", Dialect::Completions),
    ("/responses", Dialect::Responses),
    ("/messages", Dialect::Messages),
];

/// Every call with and without `/v1`: some clients add it, some do not.
pub fn agents(gateway: Arc<Gateway>) -> Router {
    let limit = DefaultBodyLimit::max(gateway.settings.body_bytes_max);
    let mut router = Router::new();
    for prefix in ["", "/v1"] {
        for (path, dialect) in CALLS {
            let call = move |gateway: State<Arc<Gateway>>, headers: HeaderMap, body: Result<Bytes, _>| {
                ask(gateway, dialect, headers, body)
            };
            router = router.route(&format!("{prefix}{path}"), post(call));
        }
        router = router
            .route(&format!("{prefix}/models"), get(models))
            .route(&format!("{prefix}/models/{{*name}}"), get(model));
    }
    router.layer(limit).with_state(gateway)
}

/// Whether a path is one of these: agents bring a key of their session and no token of the server.
pub fn is_agents_path(path: &str) -> bool {
    let path = path.strip_prefix("/v1").unwrap_or(path);
    CALLS.iter().any(|(call, _)| *call == path) || path == "/models" || path.starts_with("/models/")
}

async fn ask(
    State(gateway): State<Arc<Gateway>>,
    dialect: Dialect,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    match begin(&gateway, dialect, &headers, body).await {
        Ok(response) => {
            gateway.count_request(false);
            response
        }
        Err(refusal) => {
            gateway.count_request(true);
            refuse(dialect, &refusal)
        }
    }
}

async fn begin(
    gateway: &Arc<Gateway>,
    dialect: Dialect,
    headers: &HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, Refusal> {
    let live = of_key(gateway, headers)?;
    let body = body.map_err(|rejection| {
        let kind = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Kind::TooLarge
        } else {
            Kind::BadRequest
        };
        Refusal::new(kind, format!("the body cannot be read: {rejection}"))
    })?;
    let ask = dialect.read(&body)?;
    let answering = gateway.answer(&live, &ask, &hints(headers)).map_err(|refusal| match refusal.kind {
        Kind::ContextLength => Refusal { field: Some(prompt_field(dialect).to_owned()), ..refusal },
        _ => refusal,
    })?;
    if ask.streams {
        return Ok(sse(streamed(dialect.voice(answering.begun.clone(), &ask), answering)));
    }
    let body = whole(gateway, &live, dialect, &ask, answering).await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

fn prompt_field(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Completions => "prompt",
        Dialect::Responses => "input",
    }
}

fn sse(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, body).into_response()
}

/// The session of the key, as OpenAI's clients send it or as Anthropic's do.
fn of_key(gateway: &Gateway, headers: &HeaderMap) -> Result<Arc<Live>, Refusal> {
    let Some(key) = key(headers) else {
        let message = "no key: send the session's api_key as `Authorization: Bearer …` or as `x-api-key`";
        return Err(Refusal::new(Kind::Unauthorized, message));
    };
    gateway.by_key(key)
}

pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key.trim());
    bearer.or_else(|| text("x-api-key"))
}

fn hints(headers: &HeaderMap) -> Hints {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // The clients of OpenAI and Anthropic count their attempts.
    let attempts: u32 =
        text("x-stainless-retry-count").and_then(|count| count.parse().ok()).unwrap_or_default();
    Hints { is_retry: attempts > 0, idempotency_key: text("idempotency-key").map(str::to_owned) }
}

fn refuse(dialect: Dialect, refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, dialect.refuse(refusal)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(refusal.kind, Kind::Conflict | Kind::Forbidden) {
        // The clients of OpenAI and Anthropic take a conflict for something that passes.
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    if let Some(after) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    response
}

async fn models(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Response {
    if let Err(refusal) = of_key(&gateway, &headers) {
        return refuse(Dialect::Chat, &refusal);
    }
    let own = gateway.model.aliases.iter().filter(|alias| *alias != crate::model::ANY_NAME);
    let names: Vec<&str> = [&gateway.model.name].into_iter().chain(own).map(String::as_str).collect();
    json(dialect::models(&names, gateway.started_secs()))
}

async fn model(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = of_key(&gateway, &headers).and_then(|_| gateway.model.called(Some(&name)));
    match found {
        Ok(name) => json(dialect::model(&name, gateway.started_secs())),
        Err(refusal) => refuse(Dialect::Chat, &refusal),
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
