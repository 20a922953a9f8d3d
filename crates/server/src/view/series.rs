//! What a row has for each of its tokens beside what was sampled.
//!
//! Writers give a number for every token of the answer or for every token there is, and some leave one out. A list
//! of another length would put numbers beside the wrong tokens, so it is told as a problem and not shown.

use rollyard_store::records::{Body, Rollout};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) entropies: Option<Vec<Option<f64>>>,
    pub(super) advantages: Option<Vec<Option<f64>>>,
    pub(super) texts: Option<Vec<String>>,
    pub(super) problems: Vec<String>,
}

const ENTROPIES: [&str; 3] = ["entropies", "token_entropies", "entropy"];
const ADVANTAGES: [&str; 2] = ["advantages", "token_advantages"];
const TEXTS: [&str; 3] = ["token_texts", "token_strings", "tokens_text"];

impl Series {
    /// `tokens` is their number, the prompt's among them.
    pub(super) fn of(body: &Body, tokens: usize, prompt_len: usize) -> Self {
        let Ok(rollout) = body.rollout() else { return Self::default() };
        let mut series = Self::default();
        let lengths = Lengths { tokens, prompt_len };
        let mut numbers = |names: &[&str]| {
            let (name, list) = find(&rollout, names)?;
            let wanted =
                lengths.of_response(list).or_else(|| lengths.complain(name, list, &mut series.problems))?;
            Some(wanted.iter().map(Value::as_f64).collect())
        };
        let (entropies, advantages) = (numbers(&ENTROPIES), numbers(&ADVANTAGES));
        (series.entropies, series.advantages) = (entropies, advantages);
        series.texts = find(&rollout, &TEXTS).and_then(|(name, list)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if list.len() == tokens {
                return Some(list.iter().map(text).collect());
            }
            let response =
                lengths.of_response(list).or_else(|| lengths.complain(name, list, &mut series.problems))?;
            let prompt = std::iter::repeat_n(String::new(), prompt_len);
            Some(prompt.chain(response.iter().map(text)).collect())
        });
        series
    }
}

#[derive(Clone, Copy)]
struct Lengths {
    tokens: usize,
    prompt_len: usize,
}

impl Lengths {
    /// The part that is about the tokens after the prompt.
    fn of_response(self, list: &[Value]) -> Option<&[Value]> {
        let response = self.tokens - self.prompt_len.min(self.tokens);
        match list.len() {
            length if length == response => Some(list),
            length if length == self.tokens => list.get(self.prompt_len..),
            _ => None,
        }
    }

    fn complain<T>(self, name: &str, list: &[Value], problems: &mut Vec<String>) -> Option<T> {
        let response = self.tokens - self.prompt_len.min(self.tokens);
        let length = list.len();
        problems.push(format!(
            "{name} has {length} values, but there are {response} tokens after the prompt and {} in all; it is not \
             shown",
            self.tokens
        ));
        None
    }
}

/// The first of these that is a list, in the row or in its attributes.
fn find<'r, 'n>(rollout: &'r Rollout, names: &[&'n str]) -> Option<(&'n str, &'r [Value])> {
    names.iter().find_map(|&name| {
        let homes = [&rollout.attributes, &rollout.rest];
        let list = homes.iter().find_map(|home| home.get(name).and_then(Value::as_array))?;
        Some((name, list.as_slice()))
    })
}
