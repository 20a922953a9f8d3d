//! Read-only SQL over the rollouts of a view.

use axum::Json;
use axum::http::StatusCode;
use rollyard_store::query::QueryError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{blocking, exact};
use super::shelf::OfView;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sql))
}

const ROWS_MAX: usize = 10_000;

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SqlAsked {
    /// One SELECT over the table `rollouts`.
    sql: String,
    /// At most 10,000.
    #[serde(default = "rows_max")]
    limit: usize,
}

fn rows_max() -> usize {
    ROWS_MAX
}

#[derive(Serialize, ToSchema)]
struct SqlAnswer {
    columns: Vec<String>,
    #[schema(value_type = Vec<Vec<Object>>)]
    rows: Vec<Vec<Value>>,
    /// There are more rows than are given.
    more: bool,
}

/// Ask anything: read-only SQL. An error says where, and which columns there are.
#[utoipa::path(post, path = "/{view}/sql", tag = "view", params(("view" = String, Path)), request_body = SqlAsked,
    responses((status = 200, body = SqlAnswer), (status = 400, body = ErrorAnswer), (status = 408, body = ErrorAnswer)))]
async fn sql(OfView(view): OfView, Fields(asked): Fields<SqlAsked>) -> Result<Json<SqlAnswer>, ApiError> {
    if !(1..=ROWS_MAX).contains(&asked.limit) {
        let expected = format!("1 to {ROWS_MAX}; `rollyard query` has no limit");
        return Err(ApiError::wrong_field("limit", asked.limit, &expected));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    // Set when the time is up, and when whoever asked went away.
    let _given_up = GivenUp(Arc::clone(&cancelled));
    let answer = blocking(move || {
        let mut rows = Vec::new();
        let mut more = false;
        let columns = view.query.sql_until(&asked.sql, &cancelled, &mut |_, row| {
            more = rows.len() == asked.limit;
            if more {
                return ControlFlow::Break(());
            }
            rows.push(row.iter().cloned().map(exact).collect());
            ControlFlow::Continue(())
        });
        let columns = columns.map_err(|error| match error {
            // It is not a filter that has the mistake.
            QueryError::Mistake(mistake) => ApiError { code: "bad_sql", ..mistake.into() },
            error => error.into(),
        })?;
        Ok(Json(SqlAnswer { columns, rows, more }))
    });
    tokio::time::timeout(ANSWER_WITHIN, answer).await.unwrap_or_else(|_| {
        let message = format!(
            "the query did not end within {} s; narrow it, or run it with `rollyard query`",
            ANSWER_WITHIN.as_secs()
        );
        Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "sql_too_slow", message))
    })
}

struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
