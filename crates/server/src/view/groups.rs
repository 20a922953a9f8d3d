//! The groups of a filter, a page at a time.

use axum::Json;
use rollyard_store::query::{GROUP_SORTS, Group};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::rows::{check_limit, check_sort, choice};
use super::shelf::OfView;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(groups))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct GroupsAsked {
    /// Only rollouts that it lets through are counted; all if left out.
    filter: String,
    /// Fields of a group by comma, each with a minus for descending; by their first rows if left out.
    sort: String,
    /// A reward above this is a pass.
    pass_above: f64,
    offset: u64,
    /// At most 1,000; 100 if left out.
    limit: u64,
}

impl Default for GroupsAsked {
    fn default() -> Self {
        Self { filter: String::new(), sort: String::new(), pass_above: 0.0, offset: 0, limit: 100 }
    }
}

#[derive(Serialize, ToSchema)]
struct GroupsAnswer {
    /// Groups with at least one rollout that the filter lets through.
    total: u64,
    groups: Vec<GroupFigures>,
    /// Grows when rows that were there before changed or went.
    revision: i64,
}

#[derive(Serialize, ToSchema)]
struct GroupFigures {
    /// As text, because browsers would round it.
    group_id: String,
    /// Of its first rollout, as the step and the source are.
    prompt_hash: Option<String>,
    step: Option<i64>,
    data_source: Option<String>,
    n: u64,
    reward_mean: Option<f64>,
    reward_std: Option<f64>,
    reward_min: Option<f64>,
    reward_max: Option<f64>,
    /// Rollouts with a reward above `pass_above`.
    passes: u64,
    /// Several rollouts, all with the same reward: there is nothing to learn from.
    zero_variance: bool,
    response_chars_mean: Option<f64>,
    tokens_mean: Option<f64>,
    truncated: u64,
    lag_mean: Option<f64>,
    /// The id of its first rollout.
    first: String,
}

impl From<Group> for GroupFigures {
    fn from(group: Group) -> Self {
        let Group { step, data_source, n, passes, zero_variance, truncated, first, .. } = group;
        let Group { reward_mean, reward_std, reward_min, reward_max, .. } = group;
        let Group { response_chars_mean, tokens_mean, lag_mean, .. } = group;
        Self {
            group_id: group.group_id.to_string(),
            prompt_hash: group.prompt_hash.map(|hash| hash.to_string()),
            step,
            data_source,
            n,
            reward_mean,
            reward_std,
            reward_min,
            reward_max,
            passes,
            zero_variance,
            response_chars_mean,
            tokens_mean,
            truncated,
            lag_mean,
            first,
        }
    }
}

/// The groups of the rollouts that a filter lets through, sorted.
#[utoipa::path(get, path = "/{view}/groups", tag = "view", params(("view" = String, Path), GroupsAsked),
    responses((status = 200, body = GroupsAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn groups(
    OfView(view): OfView,
    Params(asked): Params<GroupsAsked>,
) -> Result<Json<GroupsAnswer>, ApiError> {
    check_limit(asked.limit)?;
    let choice = choice(&asked.filter, &asked.sort);
    check_sort(&choice, &GROUP_SORTS)?;
    blocking(move || {
        let revision = view.mark()?.revision;
        let range = asked.offset..asked.offset.saturating_add(asked.limit);
        let found = view.query.groups(&choice, asked.pass_above, range)?;
        let groups = found.groups.into_iter().map(GroupFigures::from).collect();
        Ok(Json(GroupsAnswer { total: found.total, groups, revision }))
    })
    .await
}
