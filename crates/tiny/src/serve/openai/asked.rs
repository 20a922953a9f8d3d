//! A request for completions, of a chat or of a text.

use rollyard_engine::generate::GenerationConfig;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::asks::{self, Asks, Wish};
use super::super::refusal::{Refusal, shown};
use super::super::{App, add, body, prompts};
use super::check_model;

/// Every field may be left out or `null`; what else a client sends is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    pub(super) model: Option<String>,
    pub(super) messages: Option<Vec<Box<RawValue>>>,
    pub(super) tools: Option<Box<RawValue>>,
    pub(super) tool_choice: Option<Value>,
    pub(super) prompt: Option<Box<RawValue>>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    min_tokens: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    frequency_penalty: Option<f32>,
    stop: Option<Box<RawValue>>,
    stop_token_ids: Option<Vec<i32>>,
    ignore_eos: Option<bool>,
    seed: Option<i64>,
    n: Option<usize>,
    /// Of a chat: whether; of a text: how many.
    logprobs: Option<Value>,
    top_logprobs: Option<usize>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    request_id: Option<String>,
    presence_penalty: Option<Value>,
    logit_bias: Option<Value>,
    response_format: Option<Value>,
    structured_outputs: Option<Value>,
    echo: Option<Value>,
    suffix: Option<Value>,
    best_of: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created_secs: u64,
    /// So many answers to each prompt, one after another.
    pub(super) asks: Asks,
    pub(super) prompts: Vec<Vec<i32>>,
    pub(super) n: usize,
    /// How many of the likeliest tokens are told with log-probs; `None` if log-probs are not wanted.
    pub(super) tops: Option<usize>,
    pub(super) stops: Vec<String>,
    /// Whether the answer may call tools.
    pub(super) calls: bool,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) token_ids: bool,
}

impl Asked {
    /// What goes with these prompts. `field` is where they come from; `answer_tokens` may come where nobody says
    /// how many.
    pub(super) fn question(
        self,
        app: &App,
        (field, all): (&str, Vec<Vec<i32>>),
        answer_tokens: u32,
        calls: bool,
    ) -> Result<Question, Refusal> {
        if let Some(name) = &self.model {
            check_model(app, name)?;
        }
        self.refuse_unsupported()?;
        for prompt in &all {
            prompts::check(field, prompt, &app.engine)?;
        }
        let id = self.request_id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| app.name_request());
        let tops = self.tops()?;
        let sampling = self.sampling(answer_tokens)?;
        let stops = sampling.stop.clone();
        let wish = Wish {
            prompts: all.iter().map(|prompt| (id.clone(), prompt.clone())).collect(),
            n: self.n.unwrap_or(1),
            sampling,
            ignore_eos: self.ignore_eos.unwrap_or_default(),
            tops: tops.unwrap_or_default(),
        };
        let n = wish.n;
        Ok(Question {
            id,
            model: app.settings.model_name.clone(),
            created_secs: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            asks: wish.asks()?,
            prompts: all,
            n,
            tops,
            stops,
            calls,
            stream: self.stream.unwrap_or_default(),
            include_usage: self.stream_options.and_then(|options| options.include_usage).unwrap_or_default(),
            token_ids: self.return_token_ids.unwrap_or_default(),
        })
    }

    fn sampling(&self, answer_tokens: u32) -> Result<GenerationConfig, Refusal> {
        let max_new_tokens = self.max_completion_tokens.or(self.max_tokens).unwrap_or(answer_tokens);
        let min_new_tokens = self.min_tokens.unwrap_or_default();
        if min_new_tokens > max_new_tokens {
            let want = format!("at most \"max_tokens\", which is {max_new_tokens}");
            return Err(Refusal::wrong("min_tokens", min_new_tokens, &want));
        }
        Ok(GenerationConfig {
            max_new_tokens,
            min_new_tokens,
            greedy: false,
            temperature: self.temperature.unwrap_or(1.0),
            top_p: self.top_p.unwrap_or(1.0),
            top_k: asks::read_top_k(self.top_k)?,
            frequency_penalty: self.frequency_penalty.unwrap_or_default(),
            // Refused if they ask for anything.
            presence_penalty: 0.0,
            json_schema: None,
            stop: body::texts("stop", self.stop.as_deref())?,
            stop_token_ids: self.stop_token_ids.clone().unwrap_or_default(),
            seed: self.seed.map(i64::cast_unsigned),
        })
    }

    fn tops(&self) -> Result<Option<usize>, Refusal> {
        let (field, count) = match (&self.logprobs, self.top_logprobs) {
            (None | Some(Value::Bool(false)), None | Some(0)) => return Ok(None),
            (None | Some(Value::Bool(false)), Some(tops)) => {
                return Err(Refusal::wrong("top_logprobs", tops, "left out unless \"logprobs\" is true"));
            }
            (Some(Value::Bool(true)), tops) => ("top_logprobs", tops.unwrap_or_default()),
            (Some(other), _) => {
                let count = other.as_u64().and_then(|count| usize::try_from(count).ok());
                (
                    "logprobs",
                    count
                        .ok_or_else(|| Refusal::wrong("logprobs", shown(other), "true, false or a count"))?,
                )
            }
        };
        asks::check_tops(field, count).map(Some)
    }

    fn refuse_unsupported(&self) -> Result<(), Refusal> {
        body::refuse_unless_neutral(&[
            ("presence_penalty", &self.presence_penalty, &[json!(0)]),
            ("logit_bias", &self.logit_bias, &[json!({})]),
            ("response_format", &self.response_format, &[json!({"type": "text"})]),
            ("structured_outputs", &self.structured_outputs, &[json!({})]),
            ("echo", &self.echo, &[json!(false)]),
            ("suffix", &self.suffix, &[json!("")]),
            ("best_of", &self.best_of, &[json!(1), json!(self.n)]),
        ])
    }
}

impl Question {
    /// What every answer and every piece of one is made of.
    pub(super) fn envelope(&self, object: &str, choices: &[Value]) -> Value {
        json!({"id": self.id, "object": object, "created": self.created_secs, "model": self.model,
            "choices": choices})
    }

    /// A piece of one answer.
    pub(super) fn chunk(&self, object: &str, choice: Value) -> Value {
        let mut chunk = self.envelope(object, &[choice]);
        if self.include_usage {
            add(&mut chunk, "usage", Value::Null);
        }
        chunk
    }

    /// Behind all pieces, what they took, if that is wanted.
    pub(super) fn last_chunk(&self, object: &str, sampled: usize) -> Option<Value> {
        let mut chunk = self.envelope(object, &[]);
        add(&mut chunk, "usage", self.usage(sampled));
        self.include_usage.then_some(chunk)
    }

    pub(super) fn usage(&self, sampled: usize) -> Value {
        let given: usize = self.prompts.iter().map(Vec::len).sum();
        json!({"prompt_tokens": given, "completion_tokens": sampled, "total_tokens": given + sampled})
    }

    /// What an answer goes on from.
    pub(super) fn prompt(&self, nth: usize) -> &[i32] {
        self.prompts.get(nth / self.n.max(1)).map_or(&[], Vec::as_slice)
    }
}
