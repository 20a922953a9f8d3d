//! What people and models say of rollouts.
//!
//! A file of lines in the data folder, keyed by the ids of rollouts, so that it survives appends, re-sharding and
//! moves of the rollouts, and never touches a user's file. A line is never changed; one is taken back by another.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use xxhash_rust::xxh3::xxh3_64;

use super::answer::{Params, blocking};
use super::rows::check_limit;
use super::sidecar::{Sidecar, Told};
use super::summary::parse_id;
use crate::App;
use crate::body::Fields;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(of)).routes(routes!(take_back))
}

#[derive(Debug)]
pub(super) struct Notes {
    file: Sidecar<Said>,
    count: AtomicU64,
}

/// All that was said and not taken back.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// By number, which is their order.
    notes: BTreeMap<u64, Value>,
    by_rollout: HashMap<String, Vec<u64>>,
    numbers: HashMap<String, u64>,
    /// Rollout, metric and model of every grade a model gave.
    graded: std::collections::HashSet<(String, String, String)>,
    next: u64,
}

impl Told for Said {
    fn hear(&mut self, line: &Value) {
        let text = |field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
        let Some(note) = text("note") else { return };
        if line.get("deleted") == Some(&Value::Bool(true)) {
            let gone = self.numbers.remove(&note).and_then(|number| self.notes.remove(&number));
            if let Some(key) = gone.as_ref().and_then(graded) {
                self.graded.remove(&key);
            }
            return;
        }
        let Some(id) = text("id") else { return };
        self.graded.extend(graded(line));
        self.by_rollout.entry(id).or_default().push(self.next);
        self.numbers.insert(note, self.next);
        self.notes.insert(self.next, line.clone());
        self.next += 1;
    }
}

fn graded(line: &Value) -> Option<(String, String, String)> {
    let text = |field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
    Some((text("id")?, text("metric")?, text("model")?))
}

impl Notes {
    pub(super) fn new(dir: &path::Path) -> Self {
        Self { file: Sidecar::new(dir.join("annotations.jsonl")), count: AtomicU64::new(0) }
    }

    /// What was said of a rollout, the oldest first.
    pub(super) fn of(&self, id: &str) -> Result<Vec<Value>, ApiError> {
        self.file.ask(|said| {
            let numbers = said.by_rollout.get(id).into_iter().flatten();
            numbers.filter_map(|number| said.notes.get(number).cloned()).collect()
        })
    }

    /// Whether a model has graded this already.
    pub(super) fn has_grade(&self, id: &str, metric: &str, model: &str) -> Result<bool, ApiError> {
        let key = (id.to_owned(), metric.to_owned(), model.to_owned());
        self.file.ask(|said| said.graded.contains(&key))
    }

    /// Keeps it, with a name and the time. Returns it as it was kept.
    pub(super) fn add(&self, mut note: Map<String, Value>) -> Result<Value, ApiError> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let name = xxh3_64(format!("{:?} {count} {}", at, std::process::id()).as_bytes());
        note.insert("note".to_owned(), format!("{name:016x}").into());
        note.insert("at".to_owned(), json!((at.as_secs_f64() * 1000.0).round() / 1000.0));
        let note = Value::Object(note);
        self.file.append(&note)?;
        Ok(note)
    }

    fn take_back(&self, note: &str) -> Result<bool, ApiError> {
        if !self.file.ask(|said| said.numbers.contains_key(note))? {
            return Ok(false);
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.file.append(&json!({"note": note, "at": at.as_secs_f64(), "deleted": true}))?;
        Ok(true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Verdict,
    Tag,
    Comment,
    Grade,
}

/// A stretch of one message, in characters.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Span {
    message: usize,
    start: usize,
    end: usize,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewNote {
    /// Of the rollout, whole.
    id: String,
    kind: Kind,
    /// Who says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    by: String,
    /// Of a verdict: such as good or bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    /// Of a comment, or beside anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Of a grade that somebody gives by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    score: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
}

const TEXT_CHARS_MAX: usize = 100_000;

impl NewNote {
    fn check(&self) -> Result<(), ApiError> {
        if parse_id(&self.id).is_none() {
            return Err(ApiError::wrong_field(
                "id",
                format_args!("{:?}", self.id),
                "a whole id, 32 hexadecimal digits",
            ));
        }
        let (field, value) = match self.kind {
            Kind::Verdict => ("verdict", &self.verdict),
            Kind::Tag => ("tag", &self.tag),
            Kind::Comment => ("text", &self.text),
            Kind::Grade => ("metric", &self.metric),
        };
        if value.as_ref().is_none_or(|value| value.trim().is_empty()) {
            return Err(ApiError::wrong_field(field, "empty", "given for this kind of annotation"));
        }
        if self.kind == Kind::Grade && !matches!(self.score, Some(Value::Number(_) | Value::Bool(_))) {
            let score = self.score.clone().unwrap_or_default();
            return Err(ApiError::wrong_field("score", score, "a number, true or false"));
        }
        let long = [&self.verdict, &self.tag, &self.text, &self.metric];
        if let Some(text) = long.into_iter().flatten().find(|text| text.len() > TEXT_CHARS_MAX) {
            let expected = format!("at most {TEXT_CHARS_MAX} bytes");
            return Err(ApiError::wrong_field(
                field,
                format_args!("a text of {} bytes", text.len()),
                &expected,
            ));
        }
        match self.span {
            Some(Span { start, end, .. }) if start > end => Err(ApiError::wrong_field(
                "span",
                format_args!("{start} to {end}"),
                "a start that is not after its end",
            )),
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NotesAsked {
    /// Of one rollout.
    id: Option<String>,
    kind: Option<Kind>,
    by: Option<String>,
    #[serde(default)]
    offset: usize,
    /// At most 1,000.
    #[serde(default = "most")]
    limit: u64,
}

fn most() -> u64 {
    super::rows::LIMIT_MAX
}

#[derive(Serialize, ToSchema)]
struct NotesAnswer {
    total: usize,
    /// The newest first.
    #[schema(value_type = Vec<Object>)]
    annotations: Vec<Value>,
}

/// What was said of rollouts.
#[utoipa::path(get, path = "/annotations", tag = "view", params(NotesAsked), responses((status = 200, body = NotesAnswer)))]
async fn list(
    State(app): State<App>,
    Params(asked): Params<NotesAsked>,
) -> Result<Json<NotesAnswer>, ApiError> {
    check_limit(asked.limit)?;
    let views = Arc::clone(&app.views);
    blocking(move || {
        let kind = asked.kind.map(|kind| serde_json::to_value(kind).unwrap_or_default());
        let fits = |note: &&Value| {
            let has = |field: &str, wanted: &Option<String>| {
                wanted.as_ref().is_none_or(|wanted| note.get(field).and_then(Value::as_str) == Some(wanted))
            };
            has("id", &asked.id)
                && has("by", &asked.by)
                && (kind.is_none() || note.get("kind") == kind.as_ref())
        };
        views.notes.file.ask(|said| {
            let all: Vec<&Value> = said.notes.values().rev().filter(fits).collect();
            let some = all.iter().skip(asked.offset).take(usize::try_from(asked.limit).unwrap_or(usize::MAX));
            Json(NotesAnswer { total: all.len(), annotations: some.map(|&note| note.clone()).collect() })
        })
    })
    .await
}

/// Say something of a rollout: a verdict, a tag, a comment on a span, a grade.
#[utoipa::path(post, path = "/annotations", tag = "view", request_body = NewNote,
    responses((status = 201, body = Object), (status = 400, body = ErrorAnswer)))]
async fn add(
    State(app): State<App>,
    Fields(new): Fields<NewNote>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    new.check()?;
    let Ok(Value::Object(mut note)) = serde_json::to_value(&new) else {
        return Err(ApiError::bad("wrong_field", "the annotation cannot be written"));
    };
    note.insert("id".to_owned(), new.id.to_ascii_lowercase().into());
    let views = Arc::clone(&app.views);
    let kept = blocking(move || views.notes.add(note)).await?;
    Ok((StatusCode::CREATED, Json(kept)))
}

/// Rollouts of one question.
const IDS_MAX: usize = 1_000;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MarksAsked {
    /// Whole ids, at most 1,000.
    ids: Vec<String>,
}

/// What was said of a rollout, in short.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Marks {
    /// The latest.
    verdict: Option<String>,
    /// Each once, in the order in which they were given.
    tags: Vec<String>,
    /// How many.
    comments: u64,
    /// The latest score by each metric, whoever gave it.
    #[schema(value_type = HashMap<String, Object>)]
    grades: BTreeMap<String, Value>,
}

impl Marks {
    fn hear(&mut self, note: &Value) {
        let text = |field: &str| note.get(field).and_then(Value::as_str).map(str::to_owned);
        match text("kind").as_deref() {
            Some("verdict") => self.verdict = text("verdict"),
            Some("tag") => self.tags.extend(text("tag").filter(|tag| !self.tags.contains(tag))),
            Some("comment") => self.comments += 1,
            Some("grade") => {
                let score = note.get("score").cloned().unwrap_or_default();
                self.grades.extend(text("metric").map(|metric| (metric, score)));
            }
            _ => {}
        }
    }
}

/// What was said of many rollouts, in short: those of which something was, by id.
#[utoipa::path(post, path = "/annotations/of", tag = "view", request_body = MarksAsked,
    responses((status = 200, body = HashMap<String, Marks>), (status = 400, body = ErrorAnswer)))]
async fn of(
    State(app): State<App>,
    Fields(asked): Fields<MarksAsked>,
) -> Result<Json<BTreeMap<String, Marks>>, ApiError> {
    if asked.ids.len() > IDS_MAX {
        let expected = format!("at most {IDS_MAX} ids; ask for the others in another call");
        return Err(ApiError::wrong_field("ids", format_args!("a list of {}", asked.ids.len()), &expected));
    }
    if let Some(wrong) = asked.ids.iter().find(|id| parse_id(id).is_none()) {
        let expected = "whole ids, 32 hexadecimal digits each";
        return Err(ApiError::wrong_field("ids", format_args!("{wrong:?} among others"), expected));
    }
    let views = Arc::clone(&app.views);
    blocking(move || {
        views.notes.file.ask(|said| {
            let mut marks: BTreeMap<String, Marks> = BTreeMap::new();
            for asked in &asked.ids {
                let numbers = said.by_rollout.get(&asked.to_ascii_lowercase()).into_iter().flatten();
                let mut notes = numbers.filter_map(|number| said.notes.get(number)).peekable();
                if notes.peek().is_some() {
                    let mut found = Marks::default();
                    notes.for_each(|note| found.hear(note));
                    marks.insert(asked.clone(), found);
                }
            }
            Json(marks)
        })
    })
    .await
}

#[derive(Serialize, ToSchema)]
pub(super) struct Gone {
    pub(super) deleted: bool,
}

/// Take an annotation back.
#[utoipa::path(delete, path = "/annotations/{note}", tag = "view", params(("note" = String, Path)),
    responses((status = 200, body = Gone), (status = 404, body = ErrorAnswer)))]
async fn take_back(State(app): State<App>, Path(note): Path<String>) -> Result<Json<Gone>, ApiError> {
    let views = Arc::clone(&app.views);
    blocking(move || {
        if views.notes.take_back(&note)? {
            return Ok(Json(Gone { deleted: true }));
        }
        let message = format!("there is no annotation {note:?}, or it was taken back");
        Err(ApiError::new(StatusCode::NOT_FOUND, "annotation_unknown", message))
    })
    .await
}
