//! Figures of a filter: how often which value, how numbers are spread, and the curves over the steps.

use axum::Json;
use rollyard_store::query::{Bin, QueryError, StepPoint};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, exact, words};
use super::shelf::OfView;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(facets)).routes(routes!(histogram)).routes(routes!(steps))
}

const VALUES_MAX: usize = 1_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct FacetsAsked {
    filter: String,
    /// Names of columns by comma.
    fields: String,
    /// Values of each, at most 1,000; 20 if left out.
    values: usize,
}

impl Default for FacetsAsked {
    fn default() -> Self {
        Self {
            filter: String::new(),
            fields: "data_source,status,stop_reason,validate".to_owned(),
            values: 20,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct FacetAnswer {
    field: String,
    /// The most frequent first.
    values: Vec<FacetValueAnswer>,
    /// Different values there are.
    distinct: u64,
    /// Lowest and highest, of numbers.
    range: Option<[f64; 2]>,
}

#[derive(Serialize, ToSchema)]
struct FacetValueAnswer {
    #[schema(value_type = Object)]
    value: Value,
    count: u64,
}

/// How often which value stands in some columns, among the rows of a filter.
#[utoipa::path(get, path = "/{view}/facets", tag = "view", params(("view" = String, Path), FacetsAsked),
    responses((status = 200, body = Vec<FacetAnswer>), (status = 400, body = ErrorAnswer)))]
async fn facets(
    OfView(view): OfView,
    Params(asked): Params<FacetsAsked>,
) -> Result<Json<Vec<FacetAnswer>>, ApiError> {
    if !(1..=VALUES_MAX).contains(&asked.values) {
        return Err(ApiError::wrong_field("values", asked.values, &format!("1 to {VALUES_MAX}")));
    }
    blocking(move || {
        let facets = view.query.facets(&asked.filter, &words(&asked.fields), asked.values)?;
        let answers = facets.into_iter().map(|facet| FacetAnswer {
            field: facet.field,
            values: facet
                .values
                .into_iter()
                .map(|value| FacetValueAnswer { value: exact(value.value), count: value.count })
                .collect(),
            distinct: facet.distinct,
            range: facet.range.map(|(low, high)| [low, high]),
        });
        Ok(Json(answers.collect()))
    })
    .await
}

const BINS_MAX: usize = 200;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct HistogramAsked {
    filter: String,
    /// A column of numbers, or an extra; reward if left out.
    field: String,
    /// 1 to 200; 40 if left out.
    bins: usize,
}

impl Default for HistogramAsked {
    fn default() -> Self {
        Self { filter: String::new(), field: "reward".to_owned(), bins: 40 }
    }
}

/// `n`, `nulls` and `not_numbers` together are all rows that the filter lets through.
#[derive(Serialize, ToSchema)]
struct HistogramAnswer {
    field: String,
    /// Numbers, all of which are in the bins.
    n: u64,
    /// Rows that do not have the field.
    nulls: u64,
    /// Values that are text or infinite, which an extra may be.
    not_numbers: u64,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    /// Of the same width each, a whole one for whole numbers; one if all numbers are the same. At most as many as asked for.
    bins: Vec<BinAnswer>,
}

/// Numbers from `from` up to and without `to`; the last bin has `to` too.
#[derive(Serialize, ToSchema)]
struct BinAnswer {
    from: f64,
    to: f64,
    count: u64,
}

/// How the numbers of a column or an extra are spread among the rows of a filter.
#[utoipa::path(get, path = "/{view}/histogram", tag = "view", params(("view" = String, Path), HistogramAsked),
    responses((status = 200, body = HistogramAnswer), (status = 400, body = ErrorAnswer)))]
async fn histogram(
    OfView(view): OfView,
    Params(asked): Params<HistogramAsked>,
) -> Result<Json<HistogramAnswer>, ApiError> {
    if !(1..=BINS_MAX).contains(&asked.bins) {
        return Err(ApiError::wrong_field("bins", asked.bins, &format!("1 to {BINS_MAX}")));
    }
    blocking(move || {
        view.query.check(&asked.filter)?;
        // The filter is in order, so a mistake that is left is about the field.
        let told =
            view.query.histogram(&asked.filter, &asked.field, asked.bins).map_err(|error| match error {
                QueryError::Mistake(mistake) => {
                    let field = Some("field".to_owned());
                    ApiError { field, ..ApiError::bad("wrong_field", format!("field \"field\": {mistake}")) }
                }
                other => other.into(),
            })?;
        let bins = told.bins.into_iter().map(|Bin { from, to, count }| BinAnswer { from, to, count });
        Ok(Json(HistogramAnswer {
            field: told.field,
            n: told.n,
            nulls: told.nulls,
            not_numbers: told.not_numbers,
            min: told.min,
            max: told.max,
            mean: told.mean,
            bins: bins.collect(),
        }))
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct StepsAsked {
    filter: String,
    /// A column whose values get a curve each, such as data_source.
    series: Option<String>,
    /// A reward above this is a pass.
    pass_above: f64,
}

impl Default for StepsAsked {
    fn default() -> Self {
        Self { filter: String::new(), series: None, pass_above: 0.0 }
    }
}

#[derive(Serialize, ToSchema)]
struct StepAnswer {
    step: i64,
    series: Option<String>,
    n: u64,
    n_prompts: u64,
    n_groups: u64,
    reward_mean: Option<f64>,
    reward_std: Option<f64>,
    reward_min: Option<f64>,
    reward_max: Option<f64>,
    /// Share of groups with at least one pass.
    pass_at_k: Option<f64>,
    response_chars_mean: Option<f64>,
    tokens_mean: Option<f64>,
    truncated: u64,
    /// Groups of several rollouts that all have the same reward.
    dead_groups: u64,
    lag_mean: Option<f64>,
}

impl From<StepPoint> for StepAnswer {
    fn from(point: StepPoint) -> Self {
        let StepPoint { step, series, n, n_prompts, n_groups, .. } = point;
        let StepPoint { reward_mean, reward_std, reward_min, reward_max, pass_at_k, .. } = point;
        let StepPoint { response_chars_mean, tokens_mean, truncated, dead_groups, lag_mean, .. } = point;
        Self {
            step,
            series,
            n,
            n_prompts,
            n_groups,
            reward_mean,
            reward_std,
            reward_min,
            reward_max,
            pass_at_k,
            response_chars_mean,
            tokens_mean,
            truncated,
            dead_groups,
            lag_mean,
        }
    }
}

/// The curves of a filter: one point for each step, and for each series if one is asked for.
#[utoipa::path(get, path = "/{view}/steps", tag = "view", params(("view" = String, Path), StepsAsked),
    responses((status = 200, body = Vec<StepAnswer>), (status = 400, body = ErrorAnswer)))]
async fn steps(
    OfView(view): OfView,
    Params(asked): Params<StepsAsked>,
) -> Result<Json<Vec<StepAnswer>>, ApiError> {
    blocking(move || {
        let series = asked.series.as_deref().filter(|series| !series.is_empty());
        let points = view.query.steps(&asked.filter, series, asked.pass_above)?;
        Ok(Json(points.into_iter().map(StepAnswer::from).collect()))
    })
    .await
}
