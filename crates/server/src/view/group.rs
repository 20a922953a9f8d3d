//! Rollouts that belong together: of one group, and of one prompt over the steps.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use rollyard_store::query::{Choice, Sort};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::blocking;
use super::indexing::View;
use super::rollout::{Hints, find_row, same};
use super::rows::{LIMIT_MAX, RowAnswer, page};
use super::shelf::OfView;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(of_rollout)).routes(routes!(prompt))
}

const COLUMNS: [&str; 17] = [
    "step",
    "reward",
    "advantage",
    "sample_index",
    "rollout_n",
    "version",
    "lag",
    "mixed",
    "status",
    "reason",
    "stop_reason",
    "truncated",
    "turns",
    "response_chars",
    "reasoning_chars",
    "tokens",
    "group_id",
];

#[derive(Serialize, ToSchema)]
struct GroupAnswer {
    /// Rollouts there are; at most 1,000 are given.
    total: u64,
    columns: Vec<String>,
    /// By sample index.
    rollouts: Vec<RowAnswer>,
    /// Several rollouts, all with the same reward: there is nothing to learn from.
    zero_variance: bool,
    reward_mean: Option<f64>,
    reward_min: Option<f64>,
    reward_max: Option<f64>,
    /// The first with the highest reward.
    best: Option<String>,
    /// The first with the lowest reward.
    worst: Option<String>,
}

/// Reads the catalog.
fn group(view: &View, filter: String, sort: &[&str]) -> Result<GroupAnswer, ApiError> {
    let sort = sort.iter().map(|&field| Sort { field: field.to_owned(), descending: false }).collect();
    let columns = COLUMNS.map(str::to_owned).to_vec();
    let page = page(view, &Choice { filter, sort }, columns, 0..LIMIT_MAX)?;
    let at = page.columns.iter().position(|column| column == "reward").unwrap_or_default();
    let rewards: Vec<(f64, &str)> = page
        .rows
        .iter()
        .filter_map(|row| Some((row.values.get(at).and_then(Value::as_f64)?, row.id.as_str())))
        .collect();
    // Of several equal ones the first: `max_by` alone would give the last.
    let best = rewards.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).copied();
    let worst = rewards.iter().min_by(|a, b| a.0.total_cmp(&b.0)).copied();
    let mean = rewards.iter().map(|(reward, _)| reward).sum::<f64>() / rewards.len() as f64;
    Ok(GroupAnswer {
        zero_variance: rewards.len() > 1
            && rewards.len() == page.rows.len()
            && best.map(|(reward, _)| reward) == worst.map(|(reward, _)| reward),
        reward_mean: (!rewards.is_empty()).then_some(mean),
        reward_min: worst.map(|(reward, _)| reward),
        reward_max: best.map(|(reward, _)| reward),
        best: best.map(|(_, id)| id.to_owned()),
        worst: worst.map(|(_, id)| id.to_owned()),
        total: page.total,
        columns: page.columns,
        rollouts: page.rows,
    })
}

/// All rollouts of a group.
#[utoipa::path(get, path = "/{view}/groups/{group_id}", tag = "view", params(("view" = String, Path), ("group_id" = String, Path)),
    responses((status = 200, body = GroupAnswer), (status = 404, body = ErrorAnswer)))]
async fn show(
    OfView(view): OfView,
    Path((_, group_id)): Path<(String, String)>,
) -> Result<Json<GroupAnswer>, ApiError> {
    let Ok(group_id) = group_id.parse::<i64>() else {
        let expected = "a whole number, as the column group_id has it";
        return Err(ApiError::wrong_field("group_id", format_args!("{group_id:?}"), expected));
    };
    blocking(move || {
        let answer = group(&view, format!("group_id == {group_id}"), &["sample_index"])?;
        if answer.total == 0 {
            let message = format!("no rollout of this view has the group {group_id}");
            return Err(ApiError::new(StatusCode::NOT_FOUND, "group_unknown", message));
        }
        Ok(Json(answer))
    })
    .await
}

/// The group that a rollout is in; itself alone if it is in none.
#[utoipa::path(get, path = "/{view}/rollouts/{id}/group", tag = "view", params(("view" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = GroupAnswer), (status = 404, body = ErrorAnswer)))]
async fn of_rollout(
    OfView(view): OfView,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<GroupAnswer>, ApiError> {
    together(view, id, "group_id", &["sample_index"]).await
}

/// The rollouts of the same prompt at every step, by step: where it was first solved, and where that was lost.
#[utoipa::path(get, path = "/{view}/rollouts/{id}/prompt", tag = "view", params(("view" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = GroupAnswer), (status = 404, body = ErrorAnswer)))]
async fn prompt(
    OfView(view): OfView,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<GroupAnswer>, ApiError> {
    together(view, id, "prompt_hash", &["step", "sample_index"]).await
}

async fn together(
    view: std::sync::Arc<View>,
    id: String,
    column: &'static str,
    sort: &'static [&'static str],
) -> Result<Json<GroupAnswer>, ApiError> {
    blocking(move || {
        let found = find_row(&view, &id, &Hints::default())?;
        let filter = same(&found, column).unwrap_or_else(|| format!("id == \"{}\"", found.id));
        group(&view, filter, sort).map(Json)
    })
    .await
}
