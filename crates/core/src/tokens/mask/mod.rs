//! Which tokens of a conversation are trained on: those the model itself would have generated.
//!
//! A [`MaskRule`] turns messages into token ids and a mask of the same length. Four rules are slime's, and
//! give what slime gives wherever that can be shown to be right; [`auto`](Auto) works for any template.
//! Each rule proves its cuts: a boundary between prompt and answer must fall between two tokens of the
//! template's own text, and text that a rule removes must be the text it meant to remove. Where it is not
//! so, the answer is a [`MaskError`] that says where rendering and tokenisation part, never a guess.

mod auto;
mod cuts;
mod error;
mod markers;
mod per_message;
mod probe;
mod rules;
mod spans;
mod turns;
mod whole;

pub use auto::Auto;
pub use error::MaskError;
pub use per_message::{Qwen, Qwen3};
pub use rules::MaskRules;
pub use turns::whole_turns;
pub use whole::{DistillQwen, Qwen35};

use minijinja::value::ValueKind;
use std::ops::Range;

use super::Tokenizer;
use super::encode::Encoder;
use super::template::{Message, Render, Rendered, Value};
use crate::rollout::Runs;

/// A way to find the tokens that are trained on. Give your own to [`MaskRules::register`].
pub trait MaskRule: Send + Sync {
    fn mask(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        how: &Render<'_>,
    ) -> Result<Masked, MaskError>;
}

/// A conversation as tokens, and which of them are trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct Masked {
    pub ids: Vec<u32>,
    /// As long as `ids`.
    pub mask: Runs<bool>,
    /// Where each message stands, where the rule knows.
    pub messages: Vec<MessageSpan>,
}

/// The tokens of one message, or of several that the template puts in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    /// The first message of the turn.
    pub message: usize,
    pub tokens: Range<usize>,
}

impl Masked {
    /// From the first token that is trained on to the end; 0 if none is.
    pub fn response_length(&self) -> usize {
        response_length(&self.mask)
    }

    /// How many tokens are trained on.
    pub fn trained(&self) -> usize {
        self.mask.spans().filter(|(_, on)| *on).map(|(span, _)| span.len()).sum()
    }
}

/// From the first 1 of a mask to its end; 0 if there is none.
pub fn response_length(mask: &Runs<bool>) -> usize {
    let first = mask.spans().find(|(_, on)| *on);
    first.map_or(0, |(span, _)| mask.len() - span.start)
}

/// The text of each stretch of trained tokens.
pub fn masked_texts(encoder: &Encoder, ids: &[u32], mask: &Runs<bool>) -> Result<Vec<String>, MaskError> {
    if ids.len() != mask.len() {
        return Err(MaskError::Lengths { ids: ids.len(), mask: mask.len() });
    }
    mask.spans()
        .filter(|(_, on)| *on)
        .map(|(span, _)| Ok(encoder.decode(ids.get(span).unwrap_or_default(), false)?))
        .collect()
}

/// Whether the message wants to be trained on: `step_loss_mask` is 1 or absent.
fn is_trained(message: &Message) -> bool {
    message.get("step_loss_mask").is_none_or(|value| *value == Value::from(1))
}

fn is_assistant(message: &Message) -> bool {
    message.role() == Some("assistant")
}

/// Roles that templates know; what they do with others has to be looked at.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

/// Refuses messages that a mask cannot be made of: see [`check_contents`] and [`check_roles`].
fn check_messages(tokenizer: &Tokenizer, messages: &[Message], how: &Render<'_>) -> Result<(), MaskError> {
    check_contents(messages)?;
    check_roles(tokenizer, messages, how)
}

/// Refuses a message whose role the template does not know and passes over without a word.
fn check_roles(tokenizer: &Tokenizer, messages: &[Message], how: &Render<'_>) -> Result<(), MaskError> {
    let is_odd = |said: &Message| said.role().is_some_and(|role| !ROLES.contains(&role));
    if !messages.iter().any(is_odd) {
        return Ok(());
    }
    let whole = render(tokenizer, messages, how)?.text;
    for (message, said) in messages.iter().enumerate().filter(|(_, said)| is_odd(said)) {
        // What Python strips, which is more than Rust does.
        let is_space = |symbol: char| symbol.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&symbol);
        let text = said.get("content").and_then(Value::as_str).unwrap_or_default().trim_matches(is_space);
        if !whole.contains(text) {
            let role = said.role().unwrap_or_default().to_owned();
            return Err(MaskError::LeftOut { message, role });
        }
    }
    Ok(())
}

/// Refuses what a template would print as something nobody said: `None`, or the source of a list.
fn check_contents(messages: &[Message]) -> Result<(), MaskError> {
    if messages.is_empty() {
        return Err(MaskError::NoMessages);
    }
    for (message, said) in messages.iter().enumerate() {
        let Some(role) = said.role() else { return Err(MaskError::NoRole { message }) };
        let has = |key: &str| said.get(key).is_some_and(|value| !value.is_none());
        let speaks_otherwise = is_assistant(said) && (has("tool_calls") || has("reasoning_content"));
        if !has("content") && !speaks_otherwise {
            return Err(MaskError::NoContent { message, role: role.to_owned() });
        }
        let content = said.get("content").filter(|content| {
            !matches!(content.kind(), ValueKind::String | ValueKind::Seq | ValueKind::None)
        });
        if let Some(content) = content {
            let found = error::head(&content.to_string());
            return Err(MaskError::NotText { message, role: role.to_owned(), found });
        }
    }
    Ok(())
}

/// A rendering; where it fails over content in parts, or prints their source, the message is named.
fn render(tokenizer: &Tokenizer, messages: &[Message], how: &Render<'_>) -> Result<Rendered, MaskError> {
    let rendered = tokenizer.render(messages, how);
    let in_parts = |said: &Message| said.get("content").is_some_and(|value| value.kind() == ValueKind::Seq);
    if let Some(message) = messages.iter().position(in_parts)
        && rendered.as_ref().map_or(true, |rendered| rendered.text.contains("[{'"))
    {
        let role = messages.get(message).and_then(Message::role).unwrap_or_default().to_owned();
        return Err(MaskError::Parts { message, role });
    }
    Ok(rendered?)
}

#[cfg(test)]
mod tests;
