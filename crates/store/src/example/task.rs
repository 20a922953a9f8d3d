//! What the four kinds of tasks have in common.

use serde_json::{Value, json};

use super::chance::Chance;

/// A question that comes again and again over the run.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub instance: String,
    pub system: String,
    pub question: String,
    pub truth: String,
}

/// One try at it, before anybody has decided what becomes of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    /// Everything after the question.
    pub messages: Vec<Value>,
    /// 0 to 1.
    pub score: f64,
    /// Parts of the score; none if it is one number.
    pub parts: Vec<(&'static str, f64)>,
    pub stop: Stop,
    pub is_unclosed: bool,
    pub is_nan: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stop {
    #[default]
    Whole,
    Length,
    ToolCalls,
    ContentFilter,
}

impl Stop {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// How good the model is at something, and how far training has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skill {
    pub step: u64,
    /// That a try succeeds.
    pub right: f64,
    /// Something went wrong in training, and what is written is worse than before.
    pub is_slump: bool,
}

pub(super) fn answer(text: impl Into<String>) -> Value {
    json!({"role": "assistant", "content": text.into()})
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    // As the API of most engines has it: the arguments are a text of their own.
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}

pub(super) fn calls(thought: Option<String>, list: Vec<Value>) -> Value {
    json!({"role": "assistant", "content": thought, "tool_calls": list})
}

pub(super) fn result(id: &str, name: &str, content: impl Into<String>) -> Value {
    json!({"role": "tool", "tool_call_id": id, "name": name, "content": content.into()})
}

/// Cuts the text as a limit of tokens would: anywhere.
pub(super) fn cut(text: &str, share: f64) -> String {
    let keep = (text.chars().count() as f64 * share) as usize;
    text.chars().take(keep).collect()
}

/// Thoughts, then what is said. Some models never close what they open, and early ones run out of tokens.
pub(super) fn think(chance: &mut Chance, thoughts: &str, said: &str, attempt: &mut Attempt) -> String {
    let mark = if chance.happens(0.12) { "reasoning" } else { "think" };
    match chance.below(100) {
        0..=4 => {
            attempt.is_unclosed = true;
            format!("<{mark}>\n{thoughts}\n\n{said}")
        }
        5..=11 => {
            let second = chance.pick(&[
                "Let me check that once more before I answer. The numbers fit the question, and nothing was left out.",
                "One more look at the question: yes, that is what it asks for.",
                "Is there another way to read this? I do not think so.",
            ]);
            format!(
                "<{mark}>\n{thoughts}\n</{mark}>\n\nI have a first result.\n\n<{mark}>\n{second}\n</{mark}>\n\n{said}"
            )
        }
        12..=16 => said.to_owned(),
        _ => format!("<{mark}>\n{thoughts}\n</{mark}>\n\n{said}"),
    }
}

/// Ends a text at a limit, in the middle of its thoughts or of its answer.
pub(super) fn run_out(chance: &mut Chance, text: &str, attempt: &mut Attempt) -> String {
    let share = 0.35 + 0.5 * chance.share();
    let kept = cut(text, share);
    attempt.stop = Stop::Length;
    let opened = kept.matches("<think>").count() + kept.matches("<reasoning>").count();
    let closed = kept.matches("</think>").count() + kept.matches("</reasoning>").count();
    attempt.is_unclosed = opened > closed;
    kept
}
