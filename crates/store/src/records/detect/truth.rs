//! The ground truth where the model could read it.
//!
//! A truth has to be long and particular enough that it does not stand somewhere by chance: `yes`, `B` and `42` stand
//! in every other prompt. One of the options of a question is no leak, and neither is a number that a tool worked
//! out, nor what the model had said before anybody told it.

use super::super::Channel;
use super::super::json::{Node, Said};
use super::{Found, is_said};
use memchr::memmem;

/// More than that is a list of something else.
const TRUTHS_MAX: usize = 8;
const CHARS_MIN: usize = 8;
/// A single word stands in a text by chance, unless it is as long as this.
const WORD_CHARS_MIN: usize = 20;
const DIGITS_MIN: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Truths {
    truths: Vec<Truth>,
    /// Told, and not yet followed by an answer.
    told: Option<Found>,
    found: Option<Found>,
}

#[derive(Debug)]
struct Truth {
    text: String,
    is_number: bool,
    /// The model knew it without being told.
    is_said: bool,
}

impl Truths {
    pub(super) fn clear(&mut self) {
        self.truths.clear();
        (self.told, self.found) = (None, None);
    }

    /// A field of the row.
    pub(super) fn hear(&mut self, name: &str, node: Node<'_>) {
        match name {
            "ground_truth" | "ground_truths" | "gts" | "answer" | "label" | "reference" => self.take(node, 0),
            "reward_model" => {
                if let Some(truth) = node.get("ground_truth") {
                    self.take(truth, 0);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, node: Node<'_>, depth: usize) {
        match node.said() {
            Said::Str(text) => self.add(text),
            Said::Int(number) => self.add(&number.to_string()),
            Said::Float(number) => self.add(&number.to_string()),
            Said::List if depth < 2 => node.items().for_each(|item| self.take(item, depth + 1)),
            Said::Object if depth < 2 => {
                for name in ["target", "answer", "value"] {
                    if let Some(truth) = node.get(name) {
                        self.take(truth, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        let text = text.trim();
        let is_known = self.truths.iter().any(|truth| truth.text == text);
        if self.truths.len() < TRUTHS_MAX && is_particular(text) && !is_known {
            self.truths.push(Truth { text: text.to_owned(), is_number: is_number(text), is_said: false });
        }
    }

    pub(super) fn see(&mut self, nth: usize, channel: Channel, text: &str) {
        if self.truths.is_empty() || self.found.is_some() {
            return;
        }
        if is_said(channel) {
            self.found = self.told.take();
            for truth in &mut self.truths {
                truth.is_said |= memmem::find(text.as_bytes(), truth.text.as_bytes()).is_some();
            }
            return;
        }
        if self.told.is_some() {
            return;
        }
        let is_tool = channel == Channel::ToolResult;
        let hit = self.truths.iter().filter(|truth| !(truth.is_said || is_tool && truth.is_number)).find_map(
            |truth| {
                let at = memmem::find_iter(text.as_bytes(), truth.text.as_bytes());
                let mut whole = at.filter(|at| stands_alone(text, *at, truth.text.len()));
                whole
                    .find(|at| is_tool || !is_option(text.get(..*at).unwrap_or_default()))
                    .map(|at| (at, truth))
            },
        );
        self.told = hit.map(|(at, truth)| {
            let place = match channel {
                Channel::System => "what the system says",
                Channel::ToolResult => "the result of a tool, before the model said it",
                _ => "the prompt",
            };
            let why = format!("the ground truth stands in {place}");
            Found { piece: nth, bytes: at..at + truth.text.len(), why }
        });
    }

    pub(super) fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }
}

fn is_number(text: &str) -> bool {
    let plain = |char: &char| !matches!(char, ',' | '$' | '%' | ' ');
    text.chars().filter(plain).collect::<String>().parse::<f64>().is_ok()
}

fn is_particular(text: &str) -> bool {
    if is_number(text) {
        return text.chars().filter(char::is_ascii_digit).count() >= DIGITS_MIN;
    }
    let chars = text.chars().take(WORD_CHARS_MIN).count();
    let is_word = text.chars().all(|char| char.is_ascii_alphabetic());
    chars >= if is_word { WORD_CHARS_MIN } else { CHARS_MIN }
}

/// Not in the middle of a word or of a longer number.
fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let is_part = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let (before, rest) = text.split_at_checked(at).unwrap_or_default();
    let (truth, after) = rest.split_at_checked(length).unwrap_or_default();
    let is_joined_before = is_part(truth.chars().next()) && is_part(before.chars().next_back());
    let is_joined_after = is_part(truth.chars().next_back()) && is_part(after.chars().next());
    !is_joined_before && !is_joined_after
}

/// Whether what comes next is one of several to choose from: after `A)`, `(b)`, `3.` or a dash.
fn is_option(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '"', '\'', '*', '`', '$']);
    let mut back = before.chars().rev();
    match back.next() {
        Some('-' | '•') => back.next().is_none_or(char::is_whitespace),
        Some(')' | '.' | ':') => {
            let is_mark = back.next().is_some_and(|char| char.is_ascii_alphanumeric());
            is_mark && back.next().is_none_or(|char| char.is_whitespace() || char == '(')
        }
        _ => false,
    }
}
