//! The buffer calls of slime, for clients that know nothing of leases.
//!
//! Every answer has the envelope those clients expect. A read takes whole groups: as few as give the number
//! of items asked for. It is a lease underneath, acked for the client once the answer has arrived.

use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rollyard_core::ledger::{LeaseTerms, Want};
use rollyard_store::yard::Yard;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::admit;
use crate::app::OfRun;
use crate::body::{Object, Raw};
use crate::deliver::{self, Frameset, Part, Receipt, Shape};
use crate::error::{ApiError, ErrorAnswer};
use crate::start;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(write))
        .routes(routes!(read))
        .routes(routes!(get_rollout_data))
        .routes(routes!(peek))
        .routes(routes!(stats))
        .routes(routes!(start::start_rollout))
}

/// How long a read that asked to wait does so when it does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(30);

#[derive(Deserialize, IntoParams)]
struct Echo {
    /// 1 to get the item back.
    #[serde(default)]
    echo: Option<String>,
}

/// Write one rollout. Durable when answered; writing it again changes nothing.
#[utoipa::path(post, path = "/buffer/write", tag = "buffer", params(Echo), request_body = Value,
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer), (status = 409, body = ErrorAnswer),
        (status = 413, body = ErrorAnswer), (status = 429, body = ErrorAnswer)))]
async fn write(
    OfRun(yard): OfRun,
    Query(echo): Query<Echo>,
    Raw(payload): Raw,
) -> Result<Response, ApiError> {
    let submission = admit::submission(payload.clone())?;
    let outcome = admit::admit(&yard, vec![submission]).await?.pop();
    let admission = outcome.ok_or_else(|| ApiError::from(rollyard_store::yard::YardError::Closed))??;
    let echoed = echo.echo.as_deref().is_some_and(|echo| matches!(echo, "1" | "true"));
    let data: Vec<&RawValue> = if echoed { vec![as_json(&payload)?] } else { Vec::new() };
    #[derive(serde::Serialize)]
    struct Data<'a> {
        data: Vec<&'a RawValue>,
        meta_info: Value,
    }
    #[derive(serde::Serialize)]
    struct Envelope<'a> {
        success: bool,
        message: &'static str,
        data: Data<'a>,
    }
    let meta_info = json!({"duplicate": admission.duplicate, "group_size_now": admission.group_size_now});
    let message = if admission.duplicate { "Item was written before" } else { "Item written" };
    Ok(Json(Envelope { success: true, message, data: Data { data, meta_info } }).into_response())
}

fn as_json(payload: &Bytes) -> Result<&RawValue, ApiError> {
    serde_json::from_slice(payload).map_err(|error| ApiError::bad("not_json", error.to_string()))
}

/// Take whole groups giving at least `batch_size` items, waiting up to `timeout` seconds if `wait` is set.
#[utoipa::path(post, path = "/buffer/read", tag = "buffer", request_body = Value,
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer)))]
async fn read(
    State(app): State<App>,
    OfRun(yard): OfRun,
    Object(asked): Object,
) -> Result<Response, ApiError> {
    take(&app, yard, Asked::from_object(&asked)?).await
}

/// Take the groups that are ready: all, or as many as give `batch_size` items.
#[utoipa::path(post, path = "/get_rollout_data", tag = "buffer", request_body = Value,
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer)))]
async fn get_rollout_data(
    State(app): State<App>,
    OfRun(yard): OfRun,
    Object(asked): Object,
) -> Result<Response, ApiError> {
    take(&app, yard, Asked::from_object(&asked)?).await
}

async fn take(app: &App, yard: Yard, asked: Asked) -> Result<Response, ApiError> {
    let terms = LeaseTerms { reader: "slime".to_owned(), secs: None, auto: true };
    let lease_secs = yard.ask(|ledger| ledger.config().lease_seconds).await?;
    let granted = tokio::select! {
        granted = yard.lease(asked.want, terms, Instant::now() + asked.patience) => granted?,
        // Whoever waits is told at once that nothing will come.
        () = app.stopping.cancelled() => None,
    };
    let Some(granted) = granted else {
        return Ok(Json(envelope(false, "Not enough finished groups yet", Value::Object(Map::new())))
            .into_response());
    };
    let count: usize = granted.groups.iter().map(|group| group.rows.len()).sum();
    let meta = app.generators.meta_info(&yard, &granted).await;
    let frameset = list_of_rows(&format!("Read {count} items"), &Some(meta).filter(|meta| !meta.is_null()))?;
    let deadline = Instant::now() + Duration::from_secs_f64(lease_secs);
    let receipt = Receipt::of(&yard, granted.lease, true, deadline);
    let parts = granted.groups.into_iter().map(Part::Group);
    let mut response = deliver::answer(yard, Some(granted.lease), parts, frameset);
    response.extensions_mut().insert(receipt);
    Ok(response)
}

fn list_of_rows(message: &str, meta: &Option<impl serde::Serialize>) -> Result<Frameset, ApiError> {
    let meta = match meta {
        Some(meta) => serde_json::to_string(meta).map_err(|e| ApiError::bad("meta", e.to_string()))?,
        None => "{}".to_owned(),
    };
    let message = Value::from(message);
    let before = format!(r#"{{"success":true,"message":{message},"data":{{"meta_info":{meta},"data":["#);
    Ok(Frameset { before, after: "]}}", shape: Shape::Rows })
}

fn envelope(success: bool, message: &str, meta_info: Value) -> Value {
    json!({"success": success, "message": message, "data": {"data": [], "meta_info": meta_info}})
}

/// What a read would return now; nothing is taken.
#[utoipa::path(get, path = "/buffer/peek", tag = "buffer", params(("batch_size" = Option<i64>, Query)),
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer)))]
async fn peek(OfRun(yard): OfRun, Query(query): Query<Map<String, Value>>) -> Result<Response, ApiError> {
    let want = Asked::from_object(&query)?.want;
    let (groups, meta) = yard.ask(move |ledger| (ledger.peek(want), ledger.meta())).await?;
    let Some(groups) = groups else {
        return Ok(Json(envelope(false, "Not enough finished groups yet", Value::Object(Map::new())))
            .into_response());
    };
    let count: usize = groups.iter().map(|group| group.rows.len()).sum();
    Ok(deliver::answer(
        yard,
        None,
        groups.into_iter().map(Part::Group),
        list_of_rows(&format!("A read would return {count} items"), &meta)?,
    ))
}

/// The size of the buffer, and the books.
#[utoipa::path(get, path = "/buffer/stats", tag = "buffer", responses((status = 200, body = Value)))]
async fn stats(OfRun(yard): OfRun) -> Result<Response, ApiError> {
    let seen = yard
        .ask(|ledger| (ledger.books().clone(), ledger.config().max_buffer_size, ledger.ready_groups()))
        .await?;
    let (books, max_size, ready) = seen;
    let stats = json!({
        "current_size": books.held,
        "max_size": max_size,
        "total_written": books.admitted,
        "total_read": books.leased + books.trained,
        "ready_groups": ready,
        "books": books,
    });
    let mut answer = envelope(true, "Statistics", Value::Object(Map::new()));
    if let (Some(fields), Value::Object(stats)) = (answer.as_object_mut(), stats) {
        // At the top for those who know where to look, and in `data` as slime has it.
        if let Some(Value::Object(data)) = fields.get_mut("data") {
            data.extend(stats.clone());
        }
        fields.extend(stats);
    }
    Ok(Json(answer).into_response())
}

/// A read as its client put it.
struct Asked {
    want: Want,
    patience: Duration,
}

impl Asked {
    fn from_object(object: &Map<String, Value>) -> Result<Self, ApiError> {
        let want = match object.get("batch_size") {
            None | Some(Value::Null) => Want::All,
            Some(value) => match whole(value) {
                Some(-1) => Want::All,
                Some(count) if count > 0 => Want::Rows(usize::try_from(count).unwrap_or(usize::MAX)),
                _ => {
                    return Err(ApiError::wrong_field(
                        "batch_size",
                        value,
                        "a number of items above 0, or -1 for all that are ready",
                    ));
                }
            },
        };
        let timeout = match object.get("timeout") {
            None | Some(Value::Null) => None,
            Some(value) => match seconds(value) {
                Some(secs) => Some(Duration::from_secs_f64(secs)),
                None => {
                    return Err(ApiError::wrong_field(
                        "timeout",
                        value,
                        "a number of seconds from 0 to 86400",
                    ));
                }
            },
        };
        let wait = match object.get("wait") {
            None | Some(Value::Null) => timeout.is_some(),
            Some(Value::Bool(wait)) => *wait,
            Some(value) => return Err(ApiError::wrong_field("wait", value, "true or false")),
        };
        let patience = if wait { timeout.unwrap_or(WAIT_DEFAULT) } else { Duration::ZERO };
        Ok(Self { want, patience })
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn seconds(value: &Value) -> Option<f64> {
    let secs = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (0.0..=86_400.0).contains(&secs).then_some(secs)
}
