//! Reads a request for a completion.

use serde_json::Map;

use super::super::fields::{Fields, is_text, list};
use super::super::options;
use super::super::sampling::{self, Names};
use crate::ask::{Ask, Prompt, Sampling};
use crate::refusal::Refusal;

const WANT: &str = "a text or a list of token ids, not empty";

pub(in super::super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let body = Fields::of_body(body)?;
    refuse_unknown_ways(&body)?;
    let names = Names { max_tokens: &["max_tokens", "max_completion_tokens"], stop: "stop" };
    let format = body.object("response_format")?;
    let sampling = Sampling {
        json_schema: sampling::schema(format.as_ref(), Some("json_schema"))?,
        ..sampling::read(&body, names)?
    };
    let want = "0 or 1: only the log-prob of the sampled token is known";
    Ok(Ask {
        model: body.text("model")?,
        prompt: prompt(&body)?,
        sampling,
        choices: options::choices(&body)?,
        logprobs: body.count("logprobs", 0..=1, want)?.is_some(),
        streams: body.flag("stream")?,
        usage_in_stream: options::usage_in_stream(&body)?,
        template_kwargs: Map::new(),
    })
}

fn prompt(body: &Fields<'_>) -> Result<Prompt, Refusal> {
    let wrong = || body.wrong("prompt", WANT);
    let mut raw = body.need("prompt", WANT)?;
    // A list of one text or of one list of tokens is what is in it.
    if raw.get().starts_with('[') {
        let entries = list("prompt", raw, WANT)?;
        let is_prompt = |entry: &str| entry.starts_with(['"', '[']);
        match entries.as_slice() {
            [only] if is_prompt(only.get()) => raw = only,
            [first, _, ..] if is_prompt(first.get()) => {
                let want = format!("one prompt, not {}: send a request for each", entries.len());
                return Err(body.wrong("prompt", &want));
            }
            _ => {}
        }
    }
    if is_text(raw) {
        let text: String = serde_json::from_str(raw.get()).map_err(|_| wrong())?;
        return if text.is_empty() { Err(wrong()) } else { Ok(Prompt::Text(text)) };
    }
    let ids = sampling::token_ids(raw).filter(|ids| !ids.is_empty());
    ids.map(Prompt::Tokens).ok_or_else(wrong)
}

fn refuse_unknown_ways(body: &Fields<'_>) -> Result<(), Refusal> {
    if body.flag("echo")? {
        return Err(body.wrong("echo", "false or left out: prompts are not repeated here"));
    }
    if body.text("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
        return Err(body.wrong("suffix", "left out: texts are only continued here"));
    }
    let n = options::choices(body)?.get();
    let want = "left out: every answer is given, and none is chosen";
    body.count("best_of", n..=n, want).map(drop)
}
