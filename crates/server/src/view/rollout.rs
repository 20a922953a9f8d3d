//! One rollout: as it is read, as it stands in its file, and its tokens.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rollyard_core::rollout::NO_VERSION;
use rollyard_core::wire::rollout::{TokensError, decode};
use rollyard_store::catalog::RowNo;
use rollyard_store::query::Choice;
use rollyard_store::records::Piece;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::detected::{DetectionAnswer, detections};
use super::indexing::View;
use super::rows::{check_limit, page};
use super::series::Series;
use super::shelf::OfView;
use super::summary::{Source, Summary, ids_like, parse_id, sources_of, summary};
use super::tokens::texts as texts_by_tokenizer;
use crate::App;
use crate::error::{ApiError, ErrorAnswer, Hint};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(raw))
        .routes(routes!(tokens))
        .routes(routes!(find))
}

/// A shorter beginning of an id is more likely a slip than a name.
const PREFIX_MIN: usize = 8;

/// Rollouts that are offered in place of one that is gone.
const NEAREST: u64 = 10;

#[derive(Serialize, ToSchema)]
pub(super) struct RolloutAnswer {
    id: String,
    /// Each with at least `role` and `content`, whatever the file's format was.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// The text of the messages in order, told apart by who says it: `<think>` and its like are reasoning.
    pieces: Vec<PieceAnswer>,
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
    #[schema(value_type = Object)]
    timestamp: Option<Value>,
    /// Every other field of the row.
    #[schema(value_type = Object)]
    pub(super) rest: Map<String, Value>,
    /// What the catalog knows of it, by column.
    #[schema(value_type = Object)]
    summary: Map<String, Value>,
    /// Other attributes, as filters can name them.
    #[schema(value_type = Object)]
    extra: Map<String, Value>,
    source: Source,
    /// Everywhere that the same rollout stands, the first one included.
    copies: Vec<Source>,
    /// Other rollouts of its group.
    siblings: u64,
    /// Why the row cannot be read; `raw` has its bytes.
    problem: Option<String>,
    /// Signs that its reward was not won by the task, each a hint to look.
    detections: Vec<DetectionAnswer>,
    /// What people and models said of it here.
    #[schema(value_type = Vec<Object>)]
    annotations: Vec<Value>,
    /// Grades that stand in the row itself, by metric.
    #[schema(value_type = Object)]
    grades: Value,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PieceAnswer {
    message: usize,
    /// system, user, assistant, reasoning, tool_call or tool_result.
    channel: &'static str,
    text: String,
}

impl From<Piece> for PieceAnswer {
    fn from(piece: Piece) -> Self {
        Self { message: piece.message, channel: piece.channel.name(), text: piece.text }
    }
}

/// What a link knew besides the id, in case the id is gone.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Hints {
    /// If the id is gone, rollouts with this number are offered.
    rollout_n: Option<i64>,
    /// If the id is gone, rollouts of this group are offered.
    group_id: Option<String>,
}

/// Finds a rollout by its id or the beginning of it. Reads the catalog.
pub(super) fn find_row(view: &View, id: &str, hints: &Hints) -> Result<Summary, ApiError> {
    let id = id.to_ascii_lowercase();
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || !(PREFIX_MIN..=32).contains(&id.len()) {
        let expected =
            "32 hexadecimal digits, or at least the first 8; links by number are at find?rollout_n=";
        return Err(ApiError::wrong_field("id", format_args!("{id:?}"), expected));
    }
    let connection = view.catalog().connect()?;
    let found = match parse_id(&id) {
        Some(id) => view.catalog().find(id)?,
        None => match ids_like(&connection, &id)?.as_slice() {
            [one] => view.catalog().find(*one)?,
            [] => None,
            several => {
                let nearest = several.iter().map(ToString::to_string).collect();
                let hint = Hint { nearest, ..Hint::default() };
                let message = format!("more than one rollout begins with {id:?}; give more digits");
                let error = ApiError::new(StatusCode::CONFLICT, "id_not_unique", message);
                return Err(ApiError { hint: Some(Box::new(hint)), ..error });
            }
        },
    };
    let read = found.map(|row| summary(&connection, row)).transpose()?.flatten();
    match read {
        Some(summary) => Ok(summary),
        None => Err(gone(view, &id, hints)),
    }
}

fn gone(view: &View, id: &str, hints: &Hints) -> ApiError {
    let filters = [
        hints.rollout_n.map(|n| format!("rollout_n == {n}")),
        hints
            .group_id
            .as_ref()
            .and_then(|group| group.parse::<i64>().ok())
            .map(|group| format!("group_id == {group}")),
    ];
    let near = filters.into_iter().flatten().find_map(|filter| {
        let choice = Choice { filter, sort: Vec::new() };
        let page = page(view, &choice, vec!["id".to_owned()], 0..NEAREST).ok()?;
        (page.total > 0).then_some(page)
    });
    let nearest: Vec<String> =
        near.map(|page| page.rows.into_iter().map(|row| row.id).collect()).unwrap_or_default();
    let mut message = format!("there is no rollout {id} in this view");
    if nearest.is_empty() {
        message.push_str("; its file may have been replaced, or lie in another place");
    } else {
        message.push_str("; `nearest` has those with the same number or group");
    }
    let hint = Hint { nearest, ..Hint::default() };
    ApiError {
        hint: Some(Box::new(hint)),
        ..ApiError::new(StatusCode::NOT_FOUND, "rollout_unknown", message)
    }
}

/// Other rollouts with the same group.
fn siblings(view: &View, found: &Summary) -> Result<u64, ApiError> {
    let Some(filter) = same(found, "group_id") else { return Ok(0) };
    let rows = view.query.rows(&Choice { filter, sort: Vec::new() })?;
    Ok(rows.iter().filter(|row| **row != found.row).count() as u64)
}

/// The filter for all rows that have the value of this one in a column.
pub(super) fn same(found: &Summary, column: &str) -> Option<String> {
    match found.columns.get(column)? {
        Value::Number(number) => Some(format!("{column} == {number}")),
        // A number that is too long for a browser.
        Value::String(number) => Some(format!("{column} == {}", number.parse::<i64>().ok()?)),
        _ => None,
    }
}

/// One rollout, whatever its format. The id may be a beginning that only one has.
#[utoipa::path(get, path = "/{view}/rollouts/{id}", tag = "view", params(("view" = String, Path), ("id" = String, Path), Hints),
    responses((status = 200, body = RolloutAnswer), (status = 404, body = ErrorAnswer)))]
async fn show(
    State(app): State<App>,
    OfView(view): OfView,
    Path((_, id)): Path<(String, String)>,
    Params(hints): Params<Hints>,
) -> Result<Json<RolloutAnswer>, ApiError> {
    blocking(move || {
        let found = find_row(&view, &id, &hints)?;
        Ok(Json(answer(&app, &view, found)?))
    })
    .await
}

/// All there is to say of a rollout. Reads its body.
pub(super) fn answer(app: &App, view: &View, found: Summary) -> Result<RolloutAnswer, ApiError> {
    let body = view.catalog().body(found.row)?;
    let (rollout, unread) = match body.rollout() {
        Ok(rollout) => (rollout, None),
        Err(problem) => (Default::default(), Some(problem)),
    };
    let pieces = body.pieces().unwrap_or_default();
    let siblings = siblings(view, &found)?;
    let detections = detections(&body, &found, siblings);
    let copies = sources_of(&view.catalog().connect()?, &found.id)?;
    let annotations = app.views.notes.of(&found.id)?;
    let grades = rollout.rest.get("grades").cloned().unwrap_or_default();
    Ok(RolloutAnswer {
        messages: rollout.messages,
        pieces: pieces.into_iter().map(PieceAnswer::from).collect(),
        attributes: rollout.attributes,
        timestamp: rollout.timestamp,
        rest: rollout.rest,
        summary: found.columns,
        extra: found.extra,
        source: found.source,
        copies,
        siblings,
        problem: found.problem.or(unread),
        detections,
        annotations,
        grades,
        id: found.id,
    })
}

/// The bytes of a row, exactly as they stand in the file.
#[utoipa::path(get, path = "/{view}/rollouts/{id}/raw", tag = "view", params(("view" = String, Path), ("id" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>), (status = 404, body = ErrorAnswer)))]
async fn raw(OfView(view): OfView, Path((_, id)): Path<(String, String)>) -> Result<Response, ApiError> {
    blocking(move || {
        let found = find_row(&view, &id, &Hints::default())?;
        let body = view.catalog().body(found.row)?;
        // Not JSON and not text, as far as a browser is concerned: whatever it is must not be run.
        let kind =
            [(header::CONTENT_TYPE, "application/octet-stream"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
        Ok((kind, body.raw).into_response())
    })
    .await
}

#[derive(Serialize, ToSchema)]
struct TokensAnswer {
    tokens: Vec<i32>,
    /// What each token adds to the text: as the row says, else by the tokenizer that the server was given. Bytes that
    /// are no whole character are written as `\xE2`.
    texts: Option<Vec<String>>,
    /// So many of them are the prompt's; the arrays below are about the others.
    prompt_len: usize,
    /// Null where it is not a number.
    logprobs: Option<Vec<f32>>,
    /// Which tokens were sampled, and so are trained on.
    mask: Vec<bool>,
    /// The weights that sampled each token, where anybody knows.
    versions: Option<Vec<i32>>,
    token_rewards: Option<Vec<f32>>,
    /// Of each token's distribution, where the row has them. Null where it is not a number.
    entropies: Option<Vec<Option<f64>>>,
    /// Of each token, where the row has them; one of the whole rollout is among its columns.
    advantages: Option<Vec<Option<f64>>>,
    /// As sampled, and not made from text again.
    exact: bool,
    /// What the row has for its tokens but cannot be shown, and why.
    problems: Vec<String>,
}

/// Token ids, log-probs, mask, versions, entropies, advantages and texts, where the row has them.
#[utoipa::path(get, path = "/{view}/rollouts/{id}/tokens", tag = "view", params(("view" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = TokensAnswer), (status = 404, body = ErrorAnswer), (status = 422, body = ErrorAnswer)))]
async fn tokens(
    State(app): State<App>,
    OfView(view): OfView,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<TokensAnswer>, ApiError> {
    blocking(move || {
        let found = find_row(&view, &id, &Hints::default())?;
        let body = view.catalog().body(found.row)?;
        let rollout = decode(&body.raw).map_err(|error| match error {
            TokensError::Absent => {
                let message =
                    "the rollout carries no tokens; archive them with the rollouts to see them here";
                ApiError::new(StatusCode::NOT_FOUND, "no_tokens", message)
            }
            error => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_tokens", error.to_string()),
        })?;
        let versions: Vec<i32> = rollout.versions().values().collect();
        let rewards: Vec<f32> = rollout.token_rewards().values().collect();
        let Series { entropies, advantages, texts, problems } =
            Series::of(&body, rollout.tokens().len(), rollout.prompt_len());
        Ok(Json(TokensAnswer {
            tokens: rollout.tokens().to_vec(),
            prompt_len: rollout.prompt_len(),
            logprobs: rollout.response_logprobs().map(<[f32]>::to_vec),
            mask: rollout.sampled().values().collect(),
            versions: versions.iter().any(|version| *version != NO_VERSION).then_some(versions),
            token_rewards: rewards.iter().any(|reward| *reward != 0.0).then_some(rewards),
            entropies,
            advantages,
            texts: texts.or_else(|| texts_by_tokenizer(&app, &rollout)),
            exact: rollout.is_exact(),
            problems,
        }))
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FindAsked {
    /// The number that the writer gave it.
    rollout_n: i64,
    /// Only in files whose URL ends like this.
    #[serde(default)]
    file: String,
    /// Ids to give, at most 1,000; 1 if left out.
    #[serde(default = "one")]
    limit: u64,
}

fn one() -> u64 {
    1
}

#[derive(Serialize, ToSchema)]
struct FindAnswer {
    /// The first match.
    id: String,
    /// The first matches, as many as were asked for.
    ids: Vec<String>,
    /// How many match: numbers of rollouts are not always unique.
    matches: u64,
}

/// The rollout with a number, as older links name it.
#[utoipa::path(get, path = "/{view}/find", tag = "view", params(("view" = String, Path), FindAsked),
    responses((status = 200, body = FindAnswer), (status = 404, body = ErrorAnswer)))]
async fn find(OfView(view): OfView, Params(asked): Params<FindAsked>) -> Result<Json<FindAnswer>, ApiError> {
    check_limit(asked.limit)?;
    blocking(move || find_by_number(&view, &asked).map(Json)).await
}

fn find_by_number(view: &Arc<View>, asked: &FindAsked) -> Result<FindAnswer, ApiError> {
    let connection = view.catalog().connect()?;
    let sql = "SELECT rows.row, count(*) OVER () FROM rows JOIN sources USING (source) \
               WHERE rollout_n = ?1 AND copy = 0 AND bad = 0 \
               AND (?2 = '' OR sources.url = ?2 OR substr(sources.url, -length(?2) - 1) = '/' || ?2) \
               ORDER BY rows.row LIMIT ?3";
    let file = asked.file.trim_start_matches("./");
    let mut statement = connection.prepare(sql)?;
    let found = statement
        .query_map(rusqlite::params![asked.rollout_n, file, asked.limit.cast_signed()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
    let found: Vec<(i64, i64)> = found.collect::<rusqlite::Result<_>>()?;
    let mut ids = Vec::new();
    for (row, _) in &found {
        ids.extend(summary(&connection, RowNo(*row))?.map(|summary| summary.id));
    }
    let (Some(id), Some((_, matches))) = (ids.first().cloned(), found.first()) else {
        let within = if file.is_empty() { String::new() } else { format!(" in {file:?}") };
        let message = format!("no rollout has the number {}{within}", asked.rollout_n);
        return Err(ApiError::new(StatusCode::NOT_FOUND, "rollout_unknown", message));
    };
    Ok(FindAnswer { id, ids, matches: matches.unsigned_abs() })
}
