//! Runs that are sampled: the trainer's step, batches for its ranks, and what is in the pool.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use rollyard_core::ids::LeaseNo;
use rollyard_core::ledger::{Command, Draw, LeaseTerms, Ledger, Refusal, ReplayStats, SampledRow};
use rollyard_core::replay::Lengths;
use rollyard_store::yard::{Granted, Yard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::leases::{SECS_MAX, check_secs};
use super::steps::DoneAnswer;
use crate::App;
use crate::app::OfRun;
use crate::body::Fields;
use crate::columns;
use crate::deliver::{self, Frameset, Part, Receipt, Shape};
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(set_step)).routes(routes!(sample)).routes(routes!(stats))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetStep {
    step: u64,
}

/// Say where the trainer is. Rollouts whose weights are too many steps behind are dropped.
#[utoipa::path(post, path = "/runs/{run}/step", tag = "replay", params(("run" = String, Path)), request_body = SetStep,
    responses((status = 200, body = DoneAnswer), (status = 409, body = ErrorAnswer)))]
async fn set_step(OfRun(yard): OfRun, Fields(set): Fields<SetStep>) -> Result<Json<DoneAnswer>, ApiError> {
    Ok(Json(yard.run(Command::SetStep { step: set.step }).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AskSample {
    /// Rollouts in the batch, for all ranks together.
    rollouts: usize,
    /// The trainer's step. One batch is drawn for a step: asking again gives the same, and other ranks their share
    /// of it. Also sets the step.
    step: Option<u64>,
    /// Which rank asks.
    #[serde(default)]
    process_id: usize,
    /// How many ranks share the batch.
    #[serde(default = "one")]
    total_processes: usize,
    /// How long to wait for enough rollouts.
    #[serde(default)]
    wait_seconds: f64,
    /// When the lease runs out; the run's `lease_seconds` if left out.
    lease_seconds: Option<f64>,
    /// Who asks, for the books.
    #[serde(default)]
    reader: String,
}

fn one() -> usize {
    1
}

impl AskSample {
    /// The rows of the batch that belong to the rank that asks.
    fn share(&self) -> Result<Range<usize>, ApiError> {
        let Self { rollouts, process_id, total_processes, step, .. } = *self;
        if rollouts == 0 {
            return Err(ApiError::wrong_field("rollouts", 0, "at least 1"));
        }
        if total_processes == 0 {
            return Err(ApiError::wrong_field("total_processes", 0, "at least 1"));
        }
        if process_id >= total_processes {
            let expected = format!("below total_processes ({total_processes})");
            return Err(ApiError::wrong_field("process_id", process_id, &expected));
        }
        if !rollouts.is_multiple_of(total_processes) {
            let expected = format!("a multiple of total_processes ({total_processes})");
            return Err(ApiError::wrong_field("rollouts", rollouts, &expected));
        }
        if total_processes > 1 && step.is_none() {
            let expected = "given when several processes share a batch: it is what tells them that it is one";
            return Err(ApiError::wrong_field("step", "missing", expected));
        }
        let local = rollouts / total_processes;
        Ok(process_id * local..(process_id + 1) * local)
    }
}

/// Draw a batch on lease, waiting until there is enough. Answers `"lease": null` if there was not.
///
/// With `Accept: application/vnd.apache.arrow.stream` the rollouts come as Arrow columns, and 204 says that there
/// was not enough.
#[utoipa::path(post, path = "/runs/{run}/sample", tag = "replay", params(("run" = String, Path)), request_body = AskSample,
    responses((status = 200, body = Value), (status = 204), (status = 400, body = ErrorAnswer),
        (status = 406, body = ErrorAnswer), (status = 409, body = ErrorAnswer)))]
async fn sample(
    State(app): State<App>,
    OfRun(yard): OfRun,
    headers: HeaderMap,
    Fields(ask): Fields<AskSample>,
) -> Result<Response, ApiError> {
    let share = ask.share()?;
    check_secs(ask.wait_seconds, ask.lease_seconds)?;
    let draw = Draw { count: ask.rollouts, step: ask.step };
    let terms = LeaseTerms { reader: ask.reader.clone(), secs: ask.lease_seconds, auto: false };
    let deadline = Instant::now() + Duration::from_secs_f64(ask.wait_seconds);
    let granted = tokio::select! {
        granted = yard.sample(draw, terms, deadline) => granted?,
        () = app.stopping.cancelled() => None,
    };
    let as_columns = columns::wanted(&headers);
    let Some(granted) = granted else {
        return Ok(match as_columns {
            true => StatusCode::NO_CONTENT.into_response(),
            false => Json(json!({"lease": null, "rollouts": []})).into_response(),
        });
    };
    let lease = granted.lease;
    let rows: Vec<SampledRow> = granted.rows.get(share).map(<[_]>::to_vec).unwrap_or_default();
    let about = about(&yard, &ask, &granted).await?;
    let delivered = match as_columns {
        true => columns::answer(&yard, rows, as_texts(&about)).await,
        false => Ok(as_json(&yard, lease, rows, &about)),
    };
    let mut response = match delivered {
        Ok(response) => response,
        Err(error) => {
            if ask.step.is_none() {
                yard.return_later(lease);
            }
            return Err(error);
        }
    };
    if ask.step.is_none() {
        // A batch of a step belongs to other ranks too, and can be asked for again; this one cannot.
        let patience = Duration::from_secs_f64(ask.lease_seconds.unwrap_or(SECS_MAX));
        let receipt = Receipt::of(&yard, lease, false, Instant::now() + patience);
        response.extensions_mut().insert(receipt);
    }
    Ok(response)
}

fn as_json(yard: &Yard, lease: LeaseNo, rows: Vec<SampledRow>, about: &Value) -> Response {
    let mut before = about.to_string();
    before.pop();
    before.push_str(",\"rollouts\":[");
    let frameset = Frameset { before, after: "]}", shape: Shape::Rows };
    deliver::answer(yard.clone(), Some(lease), rows.into_iter().map(Part::Drawn), frameset)
}

fn as_texts(about: &Value) -> BTreeMap<String, String> {
    let fields = about.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
    fields.map(|(key, value)| (key.clone(), value.to_string())).collect()
}

/// What is said of a batch beside its rollouts.
async fn about(yard: &Yard, ask: &AskSample, granted: &Granted) -> Result<Value, ApiError> {
    let (at, delay) = yard.ask(|ledger| (ledger.step(), ledger.config().rules().token_delay_max)).await?;
    let step = ask.step.and_then(|step| i64::try_from(step).ok()).or(at);
    let oldest = step.zip(delay).map(|(step, delay)| step.saturating_sub_unsigned(delay));
    Ok(json!({
        "lease": granted.lease,
        "until_ms": granted.until,
        "step": step,
        "batch_size": ask.rollouts,
        "process_id": ask.process_id,
        "total_processes": ask.total_processes,
        // Tokens of older weights leave the loss.
        "oldest_version": oldest,
        "meta_info": granted.meta,
    }))
}

/// The pool of a run in numbers.
#[derive(Serialize, ToSchema)]
pub(super) struct PoolAnswer {
    /// The trainer's.
    step: i64,
    /// Rollouts that can be drawn.
    size: usize,
    env_sizes: BTreeMap<String, usize>,
    /// Rollouts that can be drawn, by how many steps their weights are behind the trainer.
    ages_in_steps: BTreeMap<i64, u64>,
    /// When the oldest of them was made, in seconds since 1970.
    oldest_timestamp: Option<f64>,
    batches_drawn: u64,
    inserted: u64,
    sampled: u64,
    /// What was generated beside what was trained on, by environment.
    lengths: BTreeMap<String, SidesAnswer>,
}

#[derive(Serialize, ToSchema)]
struct SidesAnswer {
    generated: LengthsAnswer,
    /// One that was used twice counts twice.
    trained: LengthsAnswer,
}

/// Lengths of responses in tokens.
#[derive(Serialize, ToSchema)]
struct LengthsAnswer {
    count: u64,
    mean: f64,
    /// Counts by the longest length of their box; boxes are powers of two.
    boxes: BTreeMap<u64, u64>,
}

impl From<&Lengths> for LengthsAnswer {
    fn from(lengths: &Lengths) -> Self {
        let boxes = lengths.boxes().filter(|(_, count)| *count > 0).collect();
        Self { count: lengths.count(), mean: lengths.mean(), boxes }
    }
}

/// What can be drawn, how old it is, and whether what is trained on is like what is generated.
#[utoipa::path(get, path = "/runs/{run}/pool", tag = "replay", params(("run" = String, Path)),
    responses((status = 200, body = PoolAnswer), (status = 409, body = ErrorAnswer)))]
async fn stats(OfRun(yard): OfRun) -> Result<Json<PoolAnswer>, ApiError> {
    let refusal = Refusal::WrongMode { mode: "queue", what: "be sampled", needed: "replay" };
    yard.ask(PoolAnswer::of).await?.map(Json).ok_or_else(|| refusal.into())
}

impl PoolAnswer {
    /// `None` for a run that does not sample.
    pub(super) fn of(ledger: &Ledger) -> Option<Self> {
        let ReplayStats { step, size, env_sizes, flow, draws, ages, oldest_timestamp, census } =
            ledger.replay_stats()?;
        let sides = census.envs().map(|(env, sides)| {
            let (generated, trained) = ((&sides.generated).into(), (&sides.trained).into());
            (env.to_owned(), SidesAnswer { generated, trained })
        });
        Some(Self {
            step,
            size,
            env_sizes,
            ages_in_steps: ages,
            oldest_timestamp,
            batches_drawn: draws,
            inserted: flow.inserted,
            sampled: flow.sampled,
            lengths: sides.collect(),
        })
    }
}
