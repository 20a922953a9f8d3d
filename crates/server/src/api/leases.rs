//! Leases: taking groups, and saying what became of them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::{LeaseNo, Time};
use rollyard_core::ledger::{Command, Lease, LeaseStatus, LeaseTerms, Want};
use rollyard_store::yard::Yard;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::steps::DoneAnswer;
use crate::App;
use crate::app::OfRun;
use crate::body::Fields;
use crate::deliver::{self, Frameset, Part, Receipt, Shape};
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(list))
        .routes(routes!(fetch))
        .routes(routes!(ack))
        .routes(routes!(give_back))
        .routes(routes!(extend))
}

/// Longest wait for groups, and longest lease: a day.
pub(super) const SECS_MAX: f64 = 86_400.0;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AskLease {
    /// How many groups; all that are ready if left out.
    groups: Option<usize>,
    /// How long to wait for them.
    #[serde(default)]
    wait_seconds: f64,
    /// When the lease runs out; the run's `lease_seconds` if left out.
    lease_seconds: Option<f64>,
    /// Who asks, for the books.
    #[serde(default)]
    reader: String,
}

/// Take groups on lease, waiting until there are enough. Answers `"lease": null` if there were not.
#[utoipa::path(post, path = "/runs/{run}/lease", tag = "leases", params(("run" = String, Path)), request_body = AskLease,
    responses((status = 200, body = Value), (status = 400, body = ErrorAnswer)))]
async fn lease(
    State(app): State<App>,
    OfRun(yard): OfRun,
    Fields(ask): Fields<AskLease>,
) -> Result<Response, ApiError> {
    let want = match ask.groups {
        None => Want::All,
        Some(0) => return Err(ApiError::wrong_field("groups", 0, "at least 1")),
        Some(count) => Want::Groups(count),
    };
    check_secs(ask.wait_seconds, ask.lease_seconds)?;
    let terms = LeaseTerms { reader: ask.reader, secs: ask.lease_seconds, auto: false };
    let deadline = Instant::now() + Duration::from_secs_f64(ask.wait_seconds);
    let granted = tokio::select! {
        granted = yard.lease(want, terms, deadline) => granted?,
        () = app.stopping.cancelled() => None,
    };
    let Some(granted) = granted else {
        return Ok(Json(json!({"lease": null, "groups": []})).into_response());
    };
    let meta = app.generators.meta_info(&yard, &granted).await;
    let before = head(granted.lease, granted.until, &meta);
    let patience = Duration::from_secs_f64(ask.lease_seconds.unwrap_or(SECS_MAX));
    let receipt = Receipt::of(&yard, granted.lease, false, Instant::now() + patience);
    let frameset = Frameset { before, after: "]}", shape: Shape::Groups };
    let parts = granted.groups.into_iter().map(Part::Group);
    let mut response = deliver::answer(yard, Some(granted.lease), parts, frameset);
    response.extensions_mut().insert(receipt);
    Ok(response)
}

/// How long a reader waits, and keeps what it gets.
pub(super) fn check_secs(wait_seconds: f64, lease_seconds: Option<f64>) -> Result<(), ApiError> {
    if !(0.0..=SECS_MAX).contains(&wait_seconds) {
        return Err(ApiError::wrong_field("wait_seconds", wait_seconds, "from 0 to 86400"));
    }
    match lease_seconds {
        Some(secs) if !(secs > 0.0 && secs <= SECS_MAX) => {
            Err(ApiError::wrong_field("lease_seconds", secs, "above 0 and at most 86400"))
        }
        _ => Ok(()),
    }
}

fn head(lease: LeaseNo, until: Time, meta: &Value) -> String {
    format!(r#"{{"lease":{lease},"until_ms":{until},"meta_info":{meta},"groups":["#)
}

#[derive(Serialize, ToSchema)]
struct LeaseAnswer {
    lease: u64,
    reader: String,
    groups: usize,
    /// What was drawn, for a lease of a run that samples.
    rollouts: Option<usize>,
    granted_ms: u64,
    /// `out` or `acked`.
    status: &'static str,
    /// When it runs out, for one that is out.
    until_ms: Option<u64>,
    /// The step it is tied to, for one that is committed.
    step: Option<u64>,
}

impl LeaseAnswer {
    fn of(no: LeaseNo, lease: &Lease) -> Self {
        let (status, until_ms, step) = match lease.status {
            LeaseStatus::Out(until) => ("out", Some(until.0), None),
            LeaseStatus::Acked(step) => ("acked", None, step),
        };
        Self {
            lease: no.0,
            reader: lease.reader.to_string(),
            groups: lease.groups.len(),
            rollouts: lease.sample.as_ref().map(|sample| sample.picks.len()),
            granted_ms: lease.granted_at.0,
            status,
            until_ms,
            step,
        }
    }
}

/// The leases that are out, or acked and still possible to rewind.
#[utoipa::path(get, path = "/runs/{run}/leases", tag = "leases", params(("run" = String, Path)),
    responses((status = 200, body = Vec<LeaseAnswer>)))]
async fn list(OfRun(yard): OfRun) -> Result<Json<Vec<LeaseAnswer>>, ApiError> {
    let leases = yard.ask(|ledger| ledger.leases().map(|(no, lease)| LeaseAnswer::of(no, lease)).collect());
    Ok(Json(leases.await?))
}

/// The groups of a lease once more, for a reader that lost them on the way.
#[utoipa::path(get, path = "/runs/{run}/leases/{lease}", tag = "leases",
    params(("run" = String, Path), ("lease" = u64, Path)),
    responses((status = 200, body = Value), (status = 410, body = ErrorAnswer)))]
async fn fetch(OfRun(yard): OfRun, Path(path): Path<HashMap<String, String>>) -> Result<Response, ApiError> {
    let lease = lease_no(&path)?;
    let found = yard.ask(move |ledger| {
        let until = match ledger.lease(lease)?.status {
            LeaseStatus::Out(until) => until,
            LeaseStatus::Acked(_) => Time(0),
        };
        Some((until, ledger.leased_groups(lease), ledger.sampled_rows(lease)))
    });
    let Some((until, groups, drawn)) = found.await? else {
        let ending = yard.ask(move |ledger| ledger.lease_ending(lease)).await?;
        let why = ending.map_or("is unknown or ended long ago".to_owned(), |ending| ending.sentence());
        return Err(ApiError::new(StatusCode::GONE, "lease_gone", format!("lease {lease} {why}")));
    };
    if let Some(rows) = drawn {
        let before = format!(r#"{{"lease":{lease},"until_ms":{until},"rollouts":["#);
        let frameset = Frameset { before, after: "]}", shape: Shape::Rows };
        return Ok(deliver::answer(yard, Some(lease), rows.into_iter().map(Part::Drawn), frameset));
    }
    let frameset = Frameset { before: head(lease, until, &Value::Null), after: "]}", shape: Shape::Groups };
    Ok(deliver::answer(yard, Some(lease), groups.into_iter().map(Part::Group), frameset))
}

fn lease_no(path: &HashMap<String, String>) -> Result<LeaseNo, ApiError> {
    let text = path.get("lease").map(String::as_str).unwrap_or_default();
    text.parse().map(LeaseNo).map_err(|_| ApiError::wrong_field("lease", text, "the number of a lease"))
}

/// Trained on: the lease is final, up to a rewind. Repeating it is fine.
#[utoipa::path(post, path = "/runs/{run}/leases/{lease}/ack", tag = "leases",
    params(("run" = String, Path), ("lease" = u64, Path)),
    responses((status = 200, body = DoneAnswer), (status = 404, body = ErrorAnswer), (status = 410, body = ErrorAnswer)))]
async fn ack(
    OfRun(yard): OfRun,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Json<DoneAnswer>, ApiError> {
    run(&yard, Command::Ack { lease: lease_no(&path)? }).await
}

/// Not wanted after all: the groups go back to where they stood.
#[utoipa::path(post, path = "/runs/{run}/leases/{lease}/return", tag = "leases",
    params(("run" = String, Path), ("lease" = u64, Path)),
    responses((status = 200, body = DoneAnswer), (status = 404, body = ErrorAnswer), (status = 410, body = ErrorAnswer)))]
async fn give_back(
    OfRun(yard): OfRun,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Json<DoneAnswer>, ApiError> {
    run(&yard, Command::Return { lease: lease_no(&path)? }).await
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Extend {
    /// From now.
    seconds: f64,
}

/// Still at work: keep the lease for so many seconds from now.
#[utoipa::path(post, path = "/runs/{run}/leases/{lease}/extend", tag = "leases", request_body = Extend,
    params(("run" = String, Path), ("lease" = u64, Path)),
    responses((status = 200, body = DoneAnswer), (status = 404, body = ErrorAnswer), (status = 410, body = ErrorAnswer)))]
async fn extend(
    OfRun(yard): OfRun,
    Path(path): Path<HashMap<String, String>>,
    Fields(extend): Fields<Extend>,
) -> Result<Json<DoneAnswer>, ApiError> {
    run(&yard, Command::Extend { lease: lease_no(&path)?, secs: extend.seconds }).await
}

async fn run(yard: &Yard, command: Command) -> Result<Json<DoneAnswer>, ApiError> {
    Ok(Json(yard.run(command).await?.into()))
}
