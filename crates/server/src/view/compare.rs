//! Two views side by side, on the prompts that both have.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rollyard_store::query::{COMPARE_SORTS, Compared, Pair, QueryError, Side};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::indexing::IndexingAnswer;
use super::rows::{check_limit, check_sort, choice};
use super::shelf::OfView;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(compare))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CompareAsked {
    /// The key of the other view.
    with: String,
    /// For both views.
    #[serde(default)]
    filter: String,
    /// delta, n, n_here, n_there, reward_here, reward_there or prompt_hash by comma, each with a minus for
    /// descending; `-delta` if left out.
    #[serde(default = "by_delta")]
    sort: String,
    #[serde(default)]
    offset: u64,
    /// Pairs, at most 1,000; 100 if left out.
    #[serde(default = "hundred")]
    limit: u64,
}

fn by_delta() -> String {
    "-delta".to_owned()
}

fn hundred() -> u64 {
    100
}

/// Differences are there minus here.
#[derive(Serialize, ToSchema)]
struct CompareAnswer {
    /// Prompts that both views have under the filter.
    shared: u64,
    only_here: u64,
    only_there: u64,
    /// Each prompt counts once, by the mean of its rewards; prompts without rewards on one side are left out, here
    /// and in all that follows.
    mean_here: Option<f64>,
    mean_there: Option<f64>,
    delta_mean: Option<f64>,
    /// The 95% interval of `delta_mean`, by the normal approximation; null with fewer than two prompts.
    delta_low: Option<f64>,
    delta_high: Option<f64>,
    /// Prompts that are better there.
    better: u64,
    worse: u64,
    same: u64,
    pairs: Vec<PairAnswer>,
    /// One of both is still being indexed, so the numbers will change.
    indexing: bool,
}

#[derive(Serialize, ToSchema)]
struct PairAnswer {
    prompt_hash: String,
    /// The first 200 characters of what the user said last before the first answer.
    prompt: String,
    here: SideAnswer,
    there: SideAnswer,
    /// Null where one side has no rewards.
    delta: Option<f64>,
}

#[derive(Serialize, ToSchema)]
struct SideAnswer {
    n: u64,
    reward_mean: Option<f64>,
    /// The id of the first rollout with the highest reward.
    best: String,
}

impl From<Side> for SideAnswer {
    fn from(side: Side) -> Self {
        let Side { n, reward_mean, best } = side;
        Self { n, reward_mean, best }
    }
}

impl From<Pair> for PairAnswer {
    fn from(pair: Pair) -> Self {
        let Pair { prompt_hash, prompt, here, there, delta } = pair;
        Self { prompt_hash: prompt_hash.to_string(), prompt, here: here.into(), there: there.into(), delta }
    }
}

impl CompareAnswer {
    fn new(compared: Compared, indexing: bool) -> Self {
        let Compared { shared, only_here, only_there, mean_here, mean_there, pairs, .. } = compared;
        let Compared { delta_mean, delta_low, delta_high, better, worse, same, .. } = compared;
        let pairs = pairs.into_iter().map(PairAnswer::from).collect();
        Self {
            shared,
            only_here,
            only_there,
            mean_here,
            mean_there,
            delta_mean,
            delta_low,
            delta_high,
            better,
            worse,
            same,
            pairs,
            indexing,
        }
    }
}

/// This view and another one on the prompts that both have, paired.
#[utoipa::path(get, path = "/{view}/compare", tag = "view", params(("view" = String, Path), CompareAsked),
    responses((status = 200, body = CompareAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn compare(
    State(app): State<App>,
    OfView(here): OfView,
    Params(asked): Params<CompareAsked>,
) -> Result<Json<CompareAnswer>, ApiError> {
    check_limit(asked.limit)?;
    let choice = choice(&asked.filter, &asked.sort);
    check_sort(&choice, &COMPARE_SORTS)?;
    let there = app.views.find(&asked.with).await.map_err(|error| match error.status {
        StatusCode::NOT_FOUND => ApiError::wrong_field(
            "with",
            format_args!("{:?}", asked.with),
            "the key of another view, as POST /api/view/open gives it",
        ),
        _ => error,
    })?;
    blocking(move || {
        // A name that only this view has is no mistake of the filter as it stands.
        if let Err(QueryError::Mistake(mut mistake)) = there.query.check(&choice.filter)
            && here.query.check(&choice.filter).is_ok()
        {
            mistake.message.push_str(" in the other view");
            return Err(mistake.into());
        }
        let range = asked.offset..asked.offset.saturating_add(asked.limit);
        let compared = here.query.compare(&there.query, &choice, range)?;
        let is_behind = [&here, &there].iter().any(|view| !IndexingAnswer::from(&view.state()).done);
        Ok(Json(CompareAnswer::new(compared, is_behind)))
    })
    .await
}
