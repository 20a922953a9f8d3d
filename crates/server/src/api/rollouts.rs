//! Rollouts: writing many, and asking for the fate of one.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use rollyard_core::ledger::{Command, Fate, GroupStatus, LeaseStatus, Ledger, Whereabouts};
use rollyard_store::yard::{Admission, Submission, Yard};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::steps::DoneAnswer;
use crate::App;
use crate::admit;
use crate::app::OfRun;
use crate::body::{Fields, Lines, Unfinished};
use crate::error::{ApiError, ErrorAnswer, ErrorDetail};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(write_many))
        .routes(routes!(known))
        .routes(routes!(fate, drop_rollout))
}

/// Lines that go to the yard together.
const LINES_TOGETHER: usize = 64;
const BYTES_TOGETHER: usize = 1 << 20;

/// Refused lines that are told in full; the rest are counted.
const REJECTED_SHOWN: usize = 1000;

#[derive(Default, Serialize, ToSchema)]
struct Written {
    accepted: u64,
    /// Lines that had been written before.
    duplicates: u64,
    /// Lines that were refused; the others are not affected.
    rejected: Vec<Rejected>,
    rejected_total: u64,
}

#[derive(Serialize, ToSchema)]
struct Rejected {
    /// From 1.
    line: u64,
    #[serde(flatten)]
    error: ErrorDetail,
}

/// Write rollouts, one JSON object a line. Each line stands for itself; durable when answered. A rollout whose bytes were
/// put where `…/uploads` said has `stored` in place of its `messages`.
#[utoipa::path(post, path = "/runs/{run}/rollouts", tag = "rollouts", params(("run" = String, Path)),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = Written), (status = 413, body = ErrorAnswer)))]
async fn write_many(
    State(app): State<App>,
    OfRun(yard): OfRun,
    body: Body,
) -> Result<Json<Written>, ApiError> {
    let mut bulk = Bulk {
        yard,
        written: Written::default(),
        line: 0,
        numbers: Vec::new(),
        waiting: Vec::new(),
        bytes: 0,
    };
    let bytes_max = app.settings.body_bytes_max;
    let mut lines = Lines::new(body, bytes_max);
    loop {
        match lines.next().await {
            Ok(Some(line)) => bulk.push(line).await?,
            Ok(None) => break,
            Err(Unfinished::Broken(error)) => {
                let message = format!("the body ends after line {}: {error}", bulk.line);
                return Err(ApiError::bad("unreadable_body", message));
            }
            Err(Unfinished::TooLong) => {
                let message =
                    format!("line {} is larger than {bytes_max} bytes (--max-body-bytes)", bulk.line + 1);
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "line_too_large", message));
            }
        }
    }
    bulk.flush().await?;
    bulk.written.rejected.sort_by_key(|rejected| rejected.line);
    Ok(Json(bulk.written))
}

struct Bulk {
    yard: Yard,
    written: Written,
    line: u64,
    /// The lines that `waiting` came from.
    numbers: Vec<u64>,
    waiting: Vec<Submission>,
    bytes: usize,
}

impl Bulk {
    async fn push(&mut self, line: Bytes) -> Result<(), ApiError> {
        self.line += 1;
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let line_bytes = line.len();
        match admit::submission(line) {
            Err(error) => self.reject(self.line, error.into()),
            Ok(submission) => {
                self.bytes += line_bytes;
                self.numbers.push(self.line);
                self.waiting.push(submission);
            }
        }
        if self.waiting.len() >= LINES_TOGETHER || self.bytes >= BYTES_TOGETHER {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ApiError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let outcomes = admit::admit(&self.yard, std::mem::take(&mut self.waiting)).await?;
        for (line, outcome) in std::mem::take(&mut self.numbers).into_iter().zip(outcomes) {
            self.note(line, outcome);
        }
        Ok(())
    }

    fn note(&mut self, line: u64, outcome: Result<Admission, ApiError>) {
        match outcome {
            Ok(Admission { duplicate: true, .. }) => self.written.duplicates += 1,
            Ok(Admission { duplicate: false, .. }) => self.written.accepted += 1,
            Err(error) => self.reject(line, error),
        }
    }

    fn reject(&mut self, line: u64, error: ApiError) {
        self.written.rejected_total += 1;
        if self.written.rejected.len() < REJECTED_SHOWN {
            self.written.rejected.push(Rejected { line, error: error.detail() });
        }
    }
}

/// Where a rollout is, or what became of it.
#[derive(Serialize, ToSchema)]
struct FateAnswer {
    uid: String,
    /// `held`, `leased`, `trained` or `dropped`.
    state: &'static str,
    instance_id: Option<String>,
    round: Option<u32>,
    /// `open`, `posed` to the hooks of its generator, `ready` to be read, or `pooled` to be sampled; for one that is
    /// held.
    group: Option<&'static str>,
    group_size_now: Option<usize>,
    reward: Option<f64>,
    written_ms: Option<u64>,
    lease: Option<u64>,
    /// The step it was committed with.
    step: Option<u64>,
    /// A rewind can still put it back.
    can_rewind: bool,
    reason: Option<&'static str>,
    /// Times it has been drawn and not given back, in a run that samples.
    usage_count: Option<u32>,
}

fn tell(ledger: &Ledger, uid: &str) -> Option<FateAnswer> {
    let mut answer = FateAnswer {
        uid: uid.to_owned(),
        state: "held",
        instance_id: None,
        round: None,
        group: None,
        group_size_now: None,
        reward: None,
        written_ms: None,
        lease: None,
        step: None,
        can_rewind: false,
        reason: None,
        usage_count: None,
    };
    match ledger.whereabouts(uid)? {
        Whereabouts::Kept { group, rollout, lease, .. } => {
            answer.instance_id = Some(group.instance.to_string());
            answer.round = Some(group.round);
            answer.group = match group.status {
                GroupStatus::Open => Some("open"),
                GroupStatus::Ready(_) => Some("ready"),
                GroupStatus::Leased(..) => None,
                GroupStatus::Pooled => Some("pooled"),
                GroupStatus::Posed(_) => Some("posed"),
            };
            answer.usage_count = ledger.usage(uid);
            answer.group_size_now = Some(group.rollouts.len());
            answer.reward = Some(rollout.reward);
            answer.written_ms = Some(rollout.at.0);
            if let Some((lease, status)) = lease {
                answer.lease = Some(lease.0);
                (answer.state, answer.step) = match status {
                    LeaseStatus::Out(_) => ("leased", None),
                    LeaseStatus::Acked(step) => ("trained", step),
                };
                answer.can_rewind = answer.state == "trained";
            }
        }
        Whereabouts::Settled { fate: Fate::Trained { lease, step }, .. } => {
            answer.state = "trained";
            answer.lease = Some(lease.0);
            answer.step = step;
        }
        Whereabouts::Settled { fate: Fate::Dropped(reason), .. } => {
            answer.state = "dropped";
            answer.reason = Some(reason.name());
        }
    }
    Some(answer)
}

fn uid_of(path: &HashMap<String, String>) -> String {
    path.get("uid").cloned().unwrap_or_default()
}

fn unknown(uid: &str) -> ApiError {
    let message = format!(
        "no rollout {uid:?} is known here: it was never written, or settled long ago (`rollyard ledger rollout` looks \
         through the whole history)"
    );
    ApiError::new(StatusCode::NOT_FOUND, "rollout_unknown", message)
}

/// Most uids that can be asked after in one call.
const KNOWN_MAX: usize = 10_000;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    uids: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct KnownAnswer {
    /// Those of the uids that were written, whatever became of them.
    known: Vec<String>,
}

/// Which of these rollouts have been written: for a generator that goes on where it stopped.
#[utoipa::path(post, path = "/runs/{run}/known", tag = "rollouts", params(("run" = String, Path)), request_body = Which,
    responses((status = 200, body = KnownAnswer), (status = 400, body = ErrorAnswer)))]
async fn known(OfRun(yard): OfRun, Fields(which): Fields<Which>) -> Result<Json<KnownAnswer>, ApiError> {
    let Which { mut uids } = which;
    if uids.len() > KNOWN_MAX {
        let message = format!("uids has {} entries, but one call takes at most {KNOWN_MAX}", uids.len());
        return Err(ApiError::bad("too_many", message));
    }
    let ask = move |ledger: &Ledger| {
        uids.retain(|uid| ledger.whereabouts(uid).is_some());
        uids
    };
    Ok(Json(KnownAnswer { known: yard.ask(ask).await? }))
}

/// The fate of a rollout.
#[utoipa::path(get, path = "/runs/{run}/rollouts/{uid}", tag = "rollouts",
    params(("run" = String, Path), ("uid" = String, Path)),
    responses((status = 200, body = FateAnswer), (status = 404, body = ErrorAnswer)))]
async fn fate(
    OfRun(yard): OfRun,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Json<FateAnswer>, ApiError> {
    let uid = uid_of(&path);
    let asked = uid.clone();
    yard.ask(move |ledger| tell(ledger, &asked)).await?.map(Json).ok_or_else(|| unknown(&uid))
}

/// Take a held rollout out, with the reason `requested`.
#[utoipa::path(delete, path = "/runs/{run}/rollouts/{uid}", tag = "rollouts",
    params(("run" = String, Path), ("uid" = String, Path)),
    responses((status = 200, body = DoneAnswer), (status = 404, body = ErrorAnswer), (status = 409, body = ErrorAnswer)))]
async fn drop_rollout(
    OfRun(yard): OfRun,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Json<DoneAnswer>, ApiError> {
    Ok(Json(yard.run(Command::Drop { uid: uid_of(&path) }).await?.into()))
}
