//! The tokens of a rollout: what a chat template and a tokenizer would have made of it.
//!
//! The ids are no real model's, but texts, masks and probabilities behave as they do there: what tools said is not
//! trained on, numbers and first words are where the model decides, and what follows from them is nearly certain.

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::chance::Chance;

/// Tokens of their own, however they are surrounded.
const SPECIAL: [&str; 8] = [
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<reasoning>",
    "</reasoning>",
    "<tool_call>",
    "</tool_call>",
];
const VOCABULARY: u64 = 151_643;

#[derive(Debug)]
pub(super) struct Made {
    pub fields: Map<String, Value>,
    pub sampled: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// The weights that sampled the first token.
    pub version: u64,
    /// New weights came in while it was sampled.
    pub is_mixed: bool,
    pub advantage: Option<f64>,
    /// Models grow surer: 0 at the beginning of training, 1 at its end.
    pub progress: f64,
}

/// The fields of a row that has these messages, the first `asked` of which are the prompt.
pub(super) fn fields(messages: &[Value], asked: usize, sampling: Sampling, chance: &mut Chance) -> Made {
    let (prompt, answered) = messages.split_at(asked.min(messages.len()));
    let mut given = String::new();
    for message in prompt {
        given.push_str(&turn(message));
    }
    given.push_str("<|im_start|>assistant\n");
    let prompt = pieces(&given);
    let mut response = Response::new(sampling);
    for (nth, message) in answered.iter().enumerate() {
        if message.get("role").and_then(Value::as_str) == Some("assistant") {
            if nth > 0 {
                response.give("<|im_start|>assistant\n");
            }
            response.sample(&format!("{}<|im_end|>", body(message)), chance);
        } else {
            response.give(&format!("\n{}", turn(message)));
        }
    }
    response.into_fields(prompt)
}

fn turn(message: &Value) -> String {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
    format!("<|im_start|>{role}\n{}<|im_end|>\n", body(message))
}

fn body(message: &Value) -> String {
    let mut text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let part = |part: &Value| part.get("text").or_else(|| part.get("thinking")).cloned();
            parts.iter().filter_map(part).filter_map(|text| text.as_str().map(str::to_owned)).collect()
        }
        _ => String::new(),
    };
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").cloned().unwrap_or_default();
        text.push_str(&format!("\n<tool_call>\n{function}\n</tool_call>"));
    }
    text
}

#[derive(Debug)]
struct Response {
    sampling: Sampling,
    texts: Vec<String>,
    logprobs: Vec<f64>,
    entropies: Vec<f64>,
    mask: Vec<u8>,
}

impl Response {
    fn new(sampling: Sampling) -> Self {
        Self { sampling, texts: Vec::new(), logprobs: Vec::new(), entropies: Vec::new(), mask: Vec::new() }
    }

    fn give(&mut self, text: &str) {
        for piece in pieces(text) {
            self.texts.push(piece);
            self.logprobs.push(0.0);
            self.entropies.push(0.0);
            self.mask.push(0);
        }
    }

    fn sample(&mut self, text: &str, chance: &mut Chance) {
        let mut before = String::new();
        for piece in pieces(text) {
            let doubt = doubt(&before, &piece) * (1.25 - 0.6 * self.sampling.progress);
            let draw = chance.share();
            let surprise = if chance.happens(0.03) { 3.5 * draw } else { 0.0 };
            self.logprobs.push(round(-(doubt * draw * draw * 2.2 + surprise + 0.0004)));
            self.entropies.push(round(doubt * (0.55 + 0.6 * chance.share()) + 0.002));
            self.mask.push(1);
            before.clone_from(&piece);
            self.texts.push(piece);
        }
    }

    fn into_fields(self, prompt: Vec<String>) -> Made {
        let Sampling { version, is_mixed, advantage, .. } = self.sampling;
        let len = self.texts.len();
        let turns_at = if is_mixed { len * 3 / 5 } else { len };
        let versions: Vec<u64> = (0..len).map(|nth| version + u64::from(nth >= turns_at)).collect();
        let ids = |texts: &[String]| texts.iter().map(|text| id(text)).collect::<Vec<_>>();
        let sampled = self.mask.iter().filter(|mask| **mask == 1).count();
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("prompt_tokens", json!(ids(&prompt)));
        put("response_tokens", json!(ids(&self.texts)));
        put("response_logprobs", json!(self.logprobs));
        put("loss_mask", json!(self.mask));
        put("versions", json!(versions));
        put("entropies", json!(self.entropies));
        if let Some(advantage) = advantage {
            let each: Vec<f64> = self.mask.iter().map(|mask| advantage * f64::from(*mask)).collect();
            put("advantages", json!(each));
        }
        let texts: Vec<String> = prompt.into_iter().chain(self.texts).collect();
        put("token_texts", json!(texts));
        Made { fields, sampled }
    }
}

fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

fn id(text: &str) -> u64 {
    match SPECIAL.iter().position(|special| *special == text) {
        Some(nth) => VOCABULARY + nth as u64,
        None => xxh3_64(text.as_bytes()) % VOCABULARY,
    }
}

/// How open it is what comes next, in nats.
fn doubt(before: &str, piece: &str) -> f64 {
    let first = piece.trim_start().chars().next().unwrap_or('\n');
    let begins = before.is_empty() || before.ends_with(['.', '\n', ':', '?']) || before.starts_with('<');
    match () {
        () if piece.starts_with('<') => 0.15,
        () if first.is_ascii_digit() && !before.ends_with(|char: char| char.is_ascii_digit()) => 1.1,
        () if first.is_alphabetic() && begins => 1.6,
        () if first.is_alphabetic() && piece.starts_with(' ') => 0.55,
        // The rest of a word follows from its beginning.
        () if first.is_ascii_alphabetic() => 0.06,
        () if first.is_alphabetic() => 0.5,
        () => 0.2,
    }
}

/// Cuts a text as tokenizers of today do: words with the space before them, long ones in parts, digits one by one,
/// and characters beyond the basic plane as their bytes.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(special) = SPECIAL.iter().find(|special| rest.starts_with(**special)) {
            pieces.push((*special).to_owned());
            rest = rest.get(special.len()..).unwrap_or_default();
            continue;
        }
        let end = SPECIAL.iter().filter_map(|special| rest.find(special)).min().unwrap_or(rest.len());
        let (plain, after) = rest.split_at(end);
        cut_plain(plain, &mut pieces);
        rest = after;
    }
    pieces
}

const WORD_CHARS: usize = 10;

fn cut_plain(text: &str, pieces: &mut Vec<String>) {
    let mut word = String::new();
    for char in text.chars() {
        let letters = word.trim_start_matches(' ').chars().count();
        let is_letter = char.is_ascii_alphabetic();
        let goes_on = match char {
            _ if is_letter => {
                word.chars().all(|known| known.is_ascii_alphabetic() || known == ' ') && letters < WORD_CHARS
            }
            ' ' => !word.is_empty() && word.chars().all(|known| known == ' '),
            '\n' => word.chars().all(|known| known == '\n'),
            _ => false,
        };
        if !goes_on && !word.is_empty() {
            pieces.push(std::mem::take(&mut word));
        }
        if char.len_utf8() == 4 {
            let bytes: Vec<String> = char.to_string().bytes().map(|byte| format!("\\x{byte:02X}")).collect();
            pieces.extend(bytes.chunks(2).map(<[String]>::concat));
        } else {
            word.push(char);
        }
    }
    if !word.is_empty() {
        pieces.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let text = "<think>\nInteresting: 12 × 34, isn't it?  Yes\n\n</think>naïve 中文 <|im_end|>";
        let pieces = pieces(text);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.len() > 20, "{pieces:?}");
        assert_eq!(super::pieces("a 🌶"), ["a", " ", "\\xF0\\x9F", "\\x8C\\xB6"]);
    }
}
