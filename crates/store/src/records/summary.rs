//! What the catalog keeps of a row, found in one pass.
//!
//! Fields are looked for in `attributes` first, then in the row itself, under every name that the known formats
//! give them. A number may be written as text and a step as a float: it is taken, and the row is marked as odd.

use super::detect::Watch;
use super::fields::{Fields, Number};
use super::identity::{self, Namer};
use super::json::{Node, Reader, Said};
use super::place::Place;
use super::repetition::Repetition;
use super::shape::{self, Turn};
use super::{Channel, extra, when};
use std::borrow::Cow;

/// One narrow row; the names are those of the catalog's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub id: u128,
    /// Why it could not be read. Everything below is then empty.
    pub problem: Option<String>,
    pub step: Option<i64>,
    pub reward: Option<f64>,
    pub data_source: Option<String>,
    pub sample_index: Option<i64>,
    pub rollout_n: Option<i64>,
    pub validate: Option<bool>,
    pub experiment_name: Option<String>,
    pub status: Option<String>,
    pub reason: Option<String>,
    pub version: Option<i64>,
    pub lag: Option<i64>,
    pub mixed: Option<bool>,
    pub advantage: Option<f64>,
    pub stop_reason: Option<String>,
    pub truncated: Option<bool>,
    pub turns: Option<i64>,
    pub message_count: Option<i64>,
    pub tool_calls: Option<i64>,
    pub prompt_chars: Option<i64>,
    pub response_chars: Option<i64>,
    pub reasoning_chars: Option<i64>,
    pub tokens: Option<i64>,
    pub repetition: Option<f64>,
    pub unclosed: Option<bool>,
    pub leak: Option<bool>,
    pub tampering: Option<bool>,
    pub format_only: Option<bool>,
    pub odd: Option<bool>,
    pub time: Option<f64>,
    pub prompt_hash: Option<i64>,
    pub group_id: Option<i64>,
    pub instance_id: Option<String>,
    pub uid: Option<String>,
    pub trained_step: Option<i64>,
    /// A JSON object of the scalars that have no column.
    pub extra: Option<String>,
}

/// Summarises rows, one after the other. One for each thread: it keeps its buffers.
#[derive(Debug, Default)]
pub struct Summarizer {
    reader: Reader,
    namer: Namer,
    repetition: Repetition,
    watch: Watch,
    prompt: String,
}

impl Summarizer {
    /// `raw` is one row without its line's end, `place` the file it stands in.
    pub fn summarize(&mut self, raw: &[u8], place: &Place) -> Summary {
        // The quick way to see that all is well; the slow one mends.
        let text = match simdutf8::basic::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(raw),
        };
        let is_lossy = matches!(text, Cow::Owned(_));
        let text = text.trim_start_matches('\u{feff}');
        let row = match self.reader.read(text) {
            Ok(row) if row.is_object() => row,
            Ok(_) => return bad(raw, "the row is JSON, but no object".to_owned()),
            Err(reason) => return bad(raw, reason),
        };
        // Different broken bytes all read as the same replacement.
        let id = if is_lossy { identity::of_bytes(raw) } else { self.namer.row(row) };
        let mut fields = Fields::new(row);
        let mut summary = Summary { id, ..Summary::default() };
        summary.take_fields(&mut fields, place);
        let turns = shape::turns(row);
        self.watch.begin(row);
        let talk = Talk::read(&turns, &mut self.repetition, &mut self.watch, &mut self.prompt);
        summary.take_talk(&turns, &talk);
        summary.leak = Some(self.watch.is_leak());
        summary.tampering = Some(self.watch.is_tampering());
        summary.format_only = Some(self.watch.is_format_only(summary.reward));
        summary.group_id = Some(group(&summary, &fields));
        summary.extra = extra::scalars(row);
        summary.odd = Some(is_lossy || fields.is_odd || talk.is_odd);
        summary
    }
}

fn bad(raw: &[u8], problem: String) -> Summary {
    Summary { id: identity::of_bytes(raw), problem: Some(problem), ..Summary::default() }
}

impl Summary {
    /// Of a row that was not read as a whole.
    pub fn too_long(front: &[u8], length: u64) -> Self {
        bad(front, format!("the row is {length} bytes long, and more than 64 MiB are not read"))
    }

    fn take_fields(&mut self, fields: &mut Fields<'_>, place: &Place) {
        self.sample_index = fields.int(&["sample_index", "sample_idx", "index"]).or(Some(0));
        self.rollout_n = fields.int(&["rollout_n", "sample_idx"]).or(Some(0));
        self.version = fields.int(&["version", "weight_version", "head_version", "weight_step"]);
        let named_step = || if fields.has("attributes") { None } else { place.step(fields.has("task_id")) };
        let named_step = named_step();
        self.step = fields.int(&["step", "global_step", "rollout_id"]).or(named_step).or(Some(0));
        self.reward = fields.reward();
        self.data_source = fields.text(&["data_source", "env_name", "task"]).or(Some("unknown".to_owned()));
        self.experiment_name = fields.text(&["experiment_name", "run"]).or(Some("unknown".to_owned()));
        self.validate = fields.flag(&["validate", "is_eval"]).or(Some(place.is_eval));
        self.status = fields.text(&["status"]);
        self.reason = fields.text(&["reason", "drop_reason"]);
        self.trained_step = fields.int(&["trained_step"]);
        self.lag = match (self.trained_step, self.version) {
            (Some(step), Some(version)) => Some(step - version),
            _ => fields.int(&["lag", "staleness"]),
        };
        self.mixed = fields.mixed();
        self.advantage = fields.float(&["advantage"]);
        self.stop_reason =
            fields.text(&["stop_reason", "finish_reason", "stop_condition"]).or_else(|| fields.last_stop());
        self.truncated = fields.flag(&["truncated", "is_truncated"]).or_else(|| {
            let ended = self.stop_reason.as_deref().or(self.status.as_deref())?;
            Some(matches!(ended, "length" | "max_tokens" | "max_length" | "truncated"))
        });
        self.truncated = self.truncated.or(Some(false));
        self.tokens = fields.tokens();
        self.time =
            fields.node(&["timestamp", "time", "created_at"]).and_then(|node| when::seconds(node.said()));
        self.instance_id =
            fields.text(&["instance_id", "task_id", "example_id", "env_example_id", "problem_id"]);
        self.uid = fields.text(&["uid", "rollout_uid"]);
    }

    fn take_talk(&mut self, turns: &[Turn<'_>], talk: &Talk) {
        self.message_count = Some(turns.len() as i64);
        self.turns = Some(turns.iter().filter(|turn| turn.is_answer()).count() as i64);
        self.tool_calls = Some(turns.iter().map(Turn::tool_calls).sum::<usize>() as i64);
        self.prompt_chars = Some(talk.prompt_chars);
        self.response_chars = Some(talk.response_chars);
        self.reasoning_chars = Some(talk.reasoning_chars);
        self.repetition = Some(talk.repetition);
        self.unclosed = Some(talk.is_unclosed);
        self.prompt_hash = talk.prompt_hash;
    }
}

/// Told groups keep together whatever their steps; others are those of one prompt at one step.
fn group(summary: &Summary, fields: &Fields<'_>) -> i64 {
    let experiment = summary.experiment_name.as_deref().unwrap_or_default();
    let instance = summary.instance_id.as_deref().unwrap_or_default();
    let told = fields.told_group();
    if !told.is_empty() {
        return identity::of_texts([experiment, instance].into_iter().chain(told.iter().map(String::as_str)));
    }
    let step = summary.step.unwrap_or_default().to_string();
    let prompt = summary.prompt_hash.map(|hash| hash.to_string());
    // Without a prompt only its name can say what belongs together, and without both nothing does.
    let prompt =
        prompt.or_else(|| summary.instance_id.clone()).unwrap_or_else(|| format!("{:x}", summary.id));
    identity::of_texts([experiment, &step, &prompt])
}

#[derive(Debug, Default)]
struct Talk {
    prompt_chars: i64,
    response_chars: i64,
    reasoning_chars: i64,
    repetition: f64,
    is_unclosed: bool,
    is_odd: bool,
    prompt_hash: Option<i64>,
}

impl Talk {
    fn read(turns: &[Turn<'_>], repetition: &mut Repetition, watch: &mut Watch, prompt: &mut String) -> Self {
        let mut talk = Self { is_odd: turns.is_empty() || turns.iter().any(Turn::is_odd), ..Self::default() };
        repetition.clear();
        prompt.clear();
        let first_answer = turns.iter().position(Turn::is_answer).unwrap_or(turns.len());
        for (nth, turn) in turns.iter().enumerate() {
            let is_prompt = nth < first_answer;
            if is_prompt {
                prompt.push_str(turn.role);
                prompt.push('\0');
            }
            let unclosed = turn.pieces(&mut |channel, text| {
                watch.see(channel, text);
                let chars = text.chars().count() as i64;
                if is_prompt {
                    talk.prompt_chars += chars;
                    prompt.push_str(text);
                    prompt.push('\0');
                } else if turn.is_answer() {
                    talk.response_chars += chars;
                    repetition.read(text);
                }
                if channel == Channel::Reasoning {
                    talk.reasoning_chars += chars;
                }
            });
            talk.is_unclosed |= unclosed;
        }
        talk.repetition = repetition.share();
        talk.prompt_hash = (first_answer > 0).then(|| identity::of_piece(prompt.as_bytes()));
        talk
    }
}

/// A number that a writer may have put into quotes.
pub(super) fn number(node: Node<'_>) -> Option<Number> {
    match node.said() {
        Said::Int(int) => Some(Number::Int(int)),
        Said::UInt(uint) => Some(Number::Float(uint as f64)),
        Said::Float(float) => Some(Number::Float(float)),
        Said::Bool(bool) => Some(Number::Int(i64::from(bool))),
        Said::Str(text) => Number::of_text(text),
        Said::Null | Said::List | Said::Object => None,
    }
}
