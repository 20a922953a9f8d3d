//! A request to `/generate`.

use rollyard_engine::generate::GenerationConfig;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::asks::{self, Asks, Wish};
use super::super::prompts::{self, Prompted, Prompts};
use super::super::refusal::{Refusal, shown};
use super::super::{App, body};

/// Where nobody says how many, as SGLang has it.
const ANSWER_TOKENS: u32 = 128;

/// Every field may be left out or `null`; what else a client sends is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    input_ids: Option<Box<RawValue>>,
    text: Option<Box<RawValue>>,
    sampling_params: Option<Sampling>,
    rid: Option<Box<RawValue>>,
    return_logprob: Option<bool>,
    top_logprobs_num: Option<usize>,
    return_text_in_logprobs: Option<bool>,
    stream: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sampling {
    max_new_tokens: Option<u32>,
    min_new_tokens: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    frequency_penalty: Option<f32>,
    stop: Option<Box<RawValue>>,
    stop_token_ids: Option<Vec<i32>>,
    sampling_seed: Option<i64>,
    ignore_eos: Option<bool>,
    n: Option<usize>,
    presence_penalty: Option<Value>,
    repetition_penalty: Option<Value>,
    min_p: Option<Value>,
    json_schema: Option<Value>,
    regex: Option<Value>,
    ebnf: Option<Value>,
}

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Question {
    /// So many answers to each prompt, one after another.
    pub(super) asks: Asks,
    /// How many of the likeliest tokens are told with log-probs; `None` if log-probs are not wanted.
    pub(super) tops: Option<usize>,
    pub(super) texts_in_logprobs: bool,
    pub(super) stops: Vec<String>,
    /// Of one question the answer alone, of several a list.
    pub(super) is_list: bool,
    pub(super) stream: bool,
}

impl Asked {
    pub(super) fn question(self, app: &App) -> Result<Question, Refusal> {
        let (field, prompts) = self.prompts()?;
        let is_list = prompts.is_list;
        let prompts = prompts.tokens(field, app.engine.tokenizer())?;
        for prompt in &prompts {
            prompts::check(field, prompt, &app.engine)?;
        }
        let rids = self.rids(app, prompts.len())?;
        let wanted = self.sampling_params.unwrap_or_default();
        let tops = self.return_logprob.unwrap_or_default().then(|| self.top_logprobs_num.unwrap_or_default());
        let tops = tops.map(|count| asks::check_tops("top_logprobs_num", count)).transpose()?;
        let (n, ignore_eos) = (wanted.n.unwrap_or(1), wanted.ignore_eos.unwrap_or_default());
        let sampling = wanted.read()?;
        let stops = sampling.stop.clone();
        let prompts = rids.into_iter().zip(prompts).collect();
        let wish = Wish { prompts, n, sampling, ignore_eos, tops: tops.unwrap_or_default() };
        Ok(Question {
            asks: wish.asks()?,
            tops,
            texts_in_logprobs: self.return_text_in_logprobs.unwrap_or_default(),
            stops,
            is_list: is_list || n > 1,
            stream: self.stream.unwrap_or_default(),
        })
    }

    fn prompts(&self) -> Result<(&'static str, Prompts), Refusal> {
        let (field, raw) = match (&self.input_ids, &self.text) {
            (Some(ids), None) => ("input_ids", ids),
            (None, Some(text)) => ("text", text),
            (Some(_), Some(_)) => {
                return Err(Refusal::bad(
                    "text",
                    "fields \"input_ids\" and \"text\" are both there; give one",
                ));
            }
            (None, None) => return Err(Refusal::missing("input_ids", "token ids, or field \"text\"")),
        };
        let prompts = Prompts::parse(field, raw)?;
        match (&prompts.prompts, field) {
            (Prompted::Tokens(_), "input_ids") | (Prompted::Texts(_), "text") => Ok((field, prompts)),
            (Prompted::Texts(_), _) => Err(Refusal::wrong(field, shown(raw), "token ids, or lists of them")),
            (Prompted::Tokens(_), _) => Err(Refusal::wrong(field, shown(raw), "a text, or a list of texts")),
        }
    }

    /// A name for each prompt; one name is that of all.
    fn rids(&self, app: &App, count: usize) -> Result<Vec<String>, Refusal> {
        let mut rids = body::texts("rid", self.rid.as_deref())?;
        if rids.iter().any(String::is_empty) {
            return Err(Refusal::wrong("rid", "an empty text", "a name, or left out"));
        }
        match rids.len() {
            0 => rids.extend((0..count).map(|_| app.name_request())),
            1 => rids.extend(std::iter::repeat_n(rids.concat(), count - 1)),
            given if given == count => {}
            given => return Err(Refusal::wrong("rid", format!("{given} names"), &format!("{count} or one"))),
        }
        Ok(rids)
    }
}

impl Sampling {
    fn read(self) -> Result<GenerationConfig, Refusal> {
        body::refuse_unless_neutral(&[
            ("presence_penalty", &self.presence_penalty, &[json!(0)]),
            ("repetition_penalty", &self.repetition_penalty, &[json!(1)]),
            ("min_p", &self.min_p, &[json!(0)]),
            ("json_schema", &self.json_schema, &[]),
            ("regex", &self.regex, &[]),
            ("ebnf", &self.ebnf, &[]),
        ])?;
        Ok(GenerationConfig {
            max_new_tokens: self.max_new_tokens.unwrap_or(ANSWER_TOKENS),
            min_new_tokens: self.min_new_tokens.unwrap_or_default(),
            greedy: false,
            temperature: self.temperature.unwrap_or(1.0),
            top_p: self.top_p.unwrap_or(1.0),
            top_k: asks::read_top_k(self.top_k)?,
            frequency_penalty: self.frequency_penalty.unwrap_or_default(),
            // Refused if they ask for anything.
            presence_penalty: 0.0,
            json_schema: None,
            stop: body::texts("stop", self.stop.as_deref())?,
            stop_token_ids: self.stop_token_ids.unwrap_or_default(),
            seed: self.sampling_seed.map(i64::cast_unsigned),
        })
    }
}
