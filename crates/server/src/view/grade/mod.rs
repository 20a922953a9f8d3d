//! Grades by a model: what is asked, what it would cost, and the jobs that ask.
//!
//! A [`metric`] says what is graded, a [`question`] is one rollout by one metric, and a [`quote`] is looked for where it
//! is said to stand. A [`job`] asks all questions of a choice of rollouts, some at a time. Grades are kept as
//! annotations; what has been graded is not asked again.

mod job;
mod metric;
mod question;
mod quote;

pub(super) use job::Jobs;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use tokio_stream::wrappers::WatchStream;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{blocking, event};
use super::indexing::View;
use super::rollout::{Hints, find_row};
use super::rows::{choice, page};
use super::shelf::OfView;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};
use crate::settings::Grader;
use job::{JobAnswer, Spec};
use metric::{Metric, MetricAsked, built_in};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(graders))
        .routes(routes!(begin))
        .routes(routes!(estimate))
        .routes(routes!(jobs))
        .routes(routes!(show, cancel))
        .routes(routes!(resume))
        .routes(routes!(progress))
}

/// Rollouts of one job.
const ROLLOUTS_MAX: u64 = 10_000;

/// Tokens of an answer, for an estimate.
const ANSWER_TOKENS: u64 = 200;

/// Of text, for an estimate.
const CHARS_PER_TOKEN: u64 = 4;

#[derive(Serialize, ToSchema)]
struct GradersAnswer {
    /// False if the server was started without one: give it `--grader-url`.
    configured: bool,
    base_urls: Vec<String>,
    /// The one that is asked for unless a job names another.
    model: Option<String>,
    metrics: Vec<Metric>,
}

/// Who grades, and by which metrics of ours.
#[utoipa::path(get, path = "/graders", tag = "grades", responses((status = 200, body = GradersAnswer)))]
async fn graders(State(app): State<App>) -> Json<GradersAnswer> {
    let grader = app.settings.grader.as_ref();
    Json(GradersAnswer {
        configured: grader.is_some(),
        base_urls: grader.map(|grader| grader.urls.clone()).unwrap_or_default(),
        model: grader.and_then(|grader| grader.model.clone()),
        metrics: built_in().collect(),
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GradeAsked {
    /// Which rollouts, in the filter language.
    filter: Option<String>,
    /// In place of a filter.
    ids: Option<Vec<String>>,
    /// Names of built-in metrics, or objects with name, description, kind (float, int or bool), min and max.
    metrics: Vec<MetricAsked>,
    /// The server's own if left out.
    model: Option<String>,
    /// One of those that the server was started with; the first if left out.
    base_url: Option<String>,
    /// Rollouts at most, up to 10,000; 100 if left out.
    #[serde(default = "hundred")]
    limit: u64,
}

fn hundred() -> u64 {
    100
}

/// What a job would ask.
struct Plan {
    ids: Vec<String>,
    metrics: Vec<Metric>,
    chars: u64,
}

impl GradeAsked {
    fn metrics(&self) -> Result<Vec<Metric>, ApiError> {
        if self.metrics.is_empty() {
            return Err(ApiError::wrong_field("metrics", "[]", "at least one metric"));
        }
        self.metrics.iter().cloned().map(MetricAsked::resolve).collect()
    }

    /// Reads the catalog.
    fn plan(&self, view: &View) -> Result<Plan, ApiError> {
        if !(1..=ROLLOUTS_MAX).contains(&self.limit) {
            return Err(ApiError::wrong_field("limit", self.limit, &format!("1 to {ROLLOUTS_MAX}")));
        }
        let metrics = self.metrics()?;
        let chars_of = |prompt: &Value, response: &Value| {
            prompt.as_u64().unwrap_or_default() + response.as_u64().unwrap_or_default()
        };
        let mut plan = Plan { ids: Vec::new(), metrics, chars: 0 };
        match (&self.filter, &self.ids) {
            (Some(filter), None) => {
                let columns = vec!["prompt_chars".to_owned(), "response_chars".to_owned()];
                let rows = page(view, &choice(filter, ""), columns, 0..self.limit)?.rows;
                for row in rows {
                    if let [prompt, response] = row.values.as_slice() {
                        plan.chars += chars_of(prompt, response);
                    }
                    plan.ids.push(row.id);
                }
            }
            (None, Some(ids)) => {
                for id in ids.iter().take(usize::try_from(self.limit).unwrap_or(usize::MAX)) {
                    let found = find_row(view, id, &Hints::default())?;
                    plan.chars += chars_of(&found.value("prompt_chars"), &found.value("response_chars"));
                    plan.ids.push(found.id);
                }
            }
            _ => {
                return Err(ApiError::bad(
                    "wrong_field",
                    "give either filter or ids; a filter of \"\" is all rollouts",
                ));
            }
        }
        Ok(plan)
    }
}

/// The endpoint that a job may ask.
fn endpoint(app: &App, asked: &GradeAsked) -> Result<(Grader, String), ApiError> {
    let Some(grader) = app.settings.grader.clone() else {
        let message = "no model grades here; start the server with --grader-url URL, and its key in ROLLYARD_GRADER_KEY";
        return Err(ApiError::new(StatusCode::CONFLICT, "no_grader", message));
    };
    let first = grader.urls.first().cloned().unwrap_or_default();
    let same = |a: &str, b: &str| a.trim_end_matches('/') == b.trim_end_matches('/');
    let url = match &asked.base_url {
        None => first,
        Some(url) if grader.urls.iter().any(|known| same(known, url)) => url.clone(),
        Some(url) => {
            // The key goes only where whoever started the server wants it to go.
            let message = format!(
                "base_url {url:?} is not one that this server was started with: {}",
                grader.urls.join(", ")
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, "unknown_grader", message));
        }
    };
    Ok((grader, url))
}

#[derive(Serialize, ToSchema)]
struct EstimateAnswer {
    rollouts: usize,
    /// Rollouts times metrics, without those that this model has graded already.
    questions: u64,
    /// At four characters a token.
    input_tokens: u64,
    output_tokens: u64,
}

/// What a grading job would take, without asking anybody.
#[utoipa::path(post, path = "/{view}/grade/estimate", tag = "grades", params(("view" = String, Path)), request_body = GradeAsked,
    responses((status = 200, body = EstimateAnswer), (status = 400, body = ErrorAnswer)))]
async fn estimate(
    State(app): State<App>,
    OfView(view): OfView,
    Fields(asked): Fields<GradeAsked>,
) -> Result<Json<EstimateAnswer>, ApiError> {
    let model = asked.model.clone().or_else(|| app.settings.grader.as_ref()?.model.clone());
    let views = Arc::clone(&app.views);
    blocking(move || {
        let plan = asked.plan(&view)?;
        let mut done = 0;
        for (id, metric) in plan.ids.iter().flat_map(|id| plan.metrics.iter().map(move |metric| (id, metric)))
        {
            let model = model.as_deref().unwrap_or_default();
            done += u64::from(views.notes.has_grade(id, &metric.name, model)?);
        }
        let all = (plan.ids.len() * plan.metrics.len()) as u64;
        let questions = all - done;
        let overhead: usize = plan.metrics.iter().map(question::overhead).sum();
        let chars = plan.chars * plan.metrics.len() as u64 + (overhead * plan.ids.len()) as u64;
        // What is graded already is taken to be as long as the rest.
        let share = if all == 0 { 0.0 } else { questions as f64 / all as f64 };
        Ok(Json(EstimateAnswer {
            rollouts: plan.ids.len(),
            questions,
            input_tokens: ((chars / CHARS_PER_TOKEN) as f64 * share) as u64,
            output_tokens: questions * ANSWER_TOKENS,
        }))
    })
    .await
}

/// Have rollouts graded. The job goes on without anybody watching, and after a restart of the server.
#[utoipa::path(post, path = "/{view}/grade", tag = "grades", params(("view" = String, Path)), request_body = GradeAsked,
    responses((status = 202, body = JobAnswer), (status = 400, body = ErrorAnswer), (status = 403, body = ErrorAnswer),
        (status = 409, body = ErrorAnswer)))]
async fn begin(
    State(app): State<App>,
    OfView(view): OfView,
    Fields(asked): Fields<GradeAsked>,
) -> Result<(StatusCode, Json<JobAnswer>), ApiError> {
    let (grader, url) = endpoint(&app, &asked)?;
    let model = asked.model.clone().or(grader.model);
    let planned = Arc::clone(&view);
    let plan = blocking(move || asked.plan(&planned)).await?;
    if plan.ids.is_empty() {
        return Err(ApiError::bad("nothing_to_grade", "the filter lets no rollout through"));
    }
    let spec = Spec::new(&view, plan.ids, plan.metrics, url, model);
    let views = Arc::clone(&app.views);
    let job = blocking(move || views.jobs.make(spec)).await?;
    job.begin(&app.views);
    Ok((StatusCode::ACCEPTED, Json(job.answer())))
}

/// All grading jobs, the newest first.
#[utoipa::path(get, path = "/jobs", tag = "grades", responses((status = 200, body = Vec<JobAnswer>)))]
async fn jobs(State(app): State<App>) -> Result<Json<Vec<JobAnswer>>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || Ok(Json(views.jobs.all()?.iter().map(|job| job.answer()).collect()))).await
}

async fn find(app: &App, name: String) -> Result<Arc<job::Job>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || views.jobs.find(&name)).await
}

/// How far a grading job is.
#[utoipa::path(get, path = "/jobs/{job}", tag = "grades", params(("job" = String, Path)),
    responses((status = 200, body = JobAnswer), (status = 404, body = ErrorAnswer)))]
async fn show(State(app): State<App>, Path(name): Path<String>) -> Result<Json<JobAnswer>, ApiError> {
    Ok(Json(find(&app, name).await?.answer()))
}

/// Stop a grading job; the grades it got stay. One that has ended is left as it is.
#[utoipa::path(delete, path = "/jobs/{job}", tag = "grades", params(("job" = String, Path)),
    responses((status = 200, body = JobAnswer), (status = 404, body = ErrorAnswer)))]
async fn cancel(State(app): State<App>, Path(name): Path<String>) -> Result<Json<JobAnswer>, ApiError> {
    let job = find(&app, name).await?;
    job.cancel().await;
    Ok(Json(job.answer()))
}

/// Go on with a grading job that was stopped or failed. What is graded is not asked again.
#[utoipa::path(post, path = "/jobs/{job}/resume", tag = "grades", params(("job" = String, Path)),
    responses((status = 202, body = JobAnswer), (status = 404, body = ErrorAnswer)))]
async fn resume(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<JobAnswer>), ApiError> {
    let job = find(&app, name).await?;
    job.begin(&app.views);
    Ok((StatusCode::ACCEPTED, Json(job.answer())))
}

/// Server-sent events of a grading job: `progress`, then `done`, `cancelled` or `failed`, and the end.
#[utoipa::path(get, path = "/jobs/{job}/progress", tag = "grades", params(("job" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = JobAnswer), (status = 404, body = ErrorAnswer)))]
async fn progress(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let job = find(&app, name).await?;
    let states = WatchStream::new(job.watch()).scan(false, move |ended, state| {
        let was_ended = std::mem::replace(ended, !state.is_running());
        let name = if state.is_running() { "progress" } else { state.status.name() };
        let told = event(name, &job.answer_of(&state));
        std::future::ready((!was_ended).then_some(Ok(told)))
    });
    Ok(Sse::new(states.take_until(app.stopping.cancelled_owned())).keep_alive(KeepAlive::default()))
}
