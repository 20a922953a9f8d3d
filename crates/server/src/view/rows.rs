//! Pages of rows.

use axum::Json;
use rollyard_store::query::{Choice, Page, Sort};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking, exact, words};
use super::indexing::View;
use super::shelf::OfView;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(rows, rows_by_post))
}

/// Rows of one answer.
pub(super) const LIMIT_MAX: u64 = 1_000;

/// Shown when nobody says which.
pub(super) const SHOWN: [&str; 13] = [
    "step",
    "reward",
    "data_source",
    "rollout_n",
    "sample_index",
    "status",
    "stop_reason",
    "turns",
    "response_chars",
    "tokens",
    "group_id",
    "prompt_hash",
    "source_file",
];

#[derive(Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct RowsAsked {
    /// In the filter language; all rows if left out.
    filter: String,
    /// Names of columns by comma, each with a minus for descending: `-reward,step`.
    sort: String,
    /// Names by comma; extras can be named too.
    columns: String,
    offset: u64,
    /// At most 1,000; 100 if left out.
    limit: u64,
}

impl Default for RowsAsked {
    fn default() -> Self {
        Self { filter: String::new(), sort: String::new(), columns: String::new(), offset: 0, limit: 100 }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct RowsAnswer {
    /// Rows that the filter lets through.
    pub(super) total: u64,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<RowAnswer>,
    /// Grows when rows that were there before changed or went.
    pub(super) revision: i64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RowAnswer {
    /// Stays the same whatever is appended.
    pub(super) id: String,
    /// One for each of `columns`. Integers beyond 2^53 are given as text.
    #[schema(value_type = Vec<Object>)]
    pub(super) values: Vec<Value>,
}

pub(super) fn check_limit(limit: u64) -> Result<(), ApiError> {
    if (1..=LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let expected = format!("1 to {LIMIT_MAX}; page on with offset, or take everything with export");
    Err(ApiError::wrong_field("limit", limit, &expected))
}

pub(super) fn choice(filter: &str, sort: &str) -> Choice {
    let sorts = words(sort).into_iter().map(|word| match word.strip_prefix('-') {
        Some(field) => Sort { field: field.to_owned(), descending: true },
        None => Sort { field: word.trim_start_matches('+').to_owned(), descending: false },
    });
    Choice { filter: filter.trim().to_owned(), sort: sorts.collect() }
}

/// Of what is no row, and so has names of its own to sort by.
pub(super) fn check_sort(choice: &Choice, known: &[&str]) -> Result<(), ApiError> {
    match choice.sort.iter().find(|by| !known.contains(&by.field.as_str())) {
        None => Ok(()),
        Some(by) => {
            let expected = format!("one of {}, with a minus for descending", known.join(", "));
            Err(ApiError::wrong_field("sort", format_args!("{:?}", by.field), &expected))
        }
    }
}

/// Reads the catalog.
pub(super) fn page(
    view: &View,
    choice: &Choice,
    columns: Vec<String>,
    range: std::ops::Range<u64>,
) -> Result<RowsAnswer, ApiError> {
    let revision = view.mark()?.revision;
    let columns = if columns.is_empty() { SHOWN.map(str::to_owned).to_vec() } else { columns };
    let mut with_id = columns.clone();
    with_id.push("id".to_owned());
    let Page { total, rows, .. } = view.query.page(choice, &with_id, range)?;
    let rows = rows.into_iter().map(|(_, mut values)| {
        let id = values.pop().and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_default();
        RowAnswer { id, values: values.into_iter().map(exact).collect() }
    });
    Ok(RowsAnswer { total, columns, rows: rows.collect(), revision })
}

async fn answer(view: std::sync::Arc<View>, asked: RowsAsked) -> Result<Json<RowsAnswer>, ApiError> {
    check_limit(asked.limit)?;
    blocking(move || {
        let range = asked.offset..asked.offset.saturating_add(asked.limit);
        page(&view, &choice(&asked.filter, &asked.sort), words(&asked.columns), range).map(Json)
    })
    .await
}

/// A page of the rows that a filter lets through, sorted.
#[utoipa::path(get, path = "/{view}/rows", tag = "view", params(("view" = String, Path), RowsAsked),
    responses((status = 200, body = RowsAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn rows(OfView(view): OfView, Params(asked): Params<RowsAsked>) -> Result<Json<RowsAnswer>, ApiError> {
    answer(view, asked).await
}

/// The same for filters that are too long for a URL.
#[utoipa::path(post, path = "/{view}/rows", tag = "view", params(("view" = String, Path)), request_body = RowsAsked,
    responses((status = 200, body = RowsAnswer), (status = 400, body = ErrorAnswer), (status = 404, body = ErrorAnswer)))]
async fn rows_by_post(
    OfView(view): OfView,
    Fields(asked): Fields<RowsAsked>,
) -> Result<Json<RowsAnswer>, ApiError> {
    answer(view, asked).await
}
