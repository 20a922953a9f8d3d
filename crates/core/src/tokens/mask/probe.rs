//! What a template puts around a message: found by rendering two messages whose text is known.

use super::MaskError;
use super::error::tail;
use crate::tokens::Tokenizer;
use crate::tokens::template::value::Dict;
use crate::tokens::template::{Message, Render, Value};

/// Stands for any message; never in the result.
const DUMMY: &str = "FOR CALCULATING LOSS MASK ONLY";

pub(super) struct Probe {
    pub(super) dummy: Message,
    /// What comes before the first message when it is not a system message: a default system prompt.
    pub(super) system: String,
    /// The dummy by itself.
    pub(super) block: String,
    /// What makes the model answer.
    pub(super) generation: String,
}

/// A user who says the dummy's text.
fn dummy() -> Message {
    let pairs =
        [("role", "user"), ("content", DUMMY)].map(|(key, text)| (Value::from(key), Value::from(text)));
    Message::from_value(0, &Dict::from_pairs(pairs).into_value()).expect("a dict is a message")
}

impl Probe {
    pub(super) fn of(tokenizer: &Tokenizer, how: &Render<'_>) -> Result<Self, MaskError> {
        let dummy = dummy();
        let bare = Render { tools: None, documents: None, ..*how };
        let one = tokenizer.render(std::slice::from_ref(&dummy), &bare)?.text;
        let two = tokenizer.render(&[dummy.clone(), dummy.clone()], &bare)?.text;
        let edge = |found: &str| MaskError::Edge {
            message: 0,
            role: "user".to_owned(),
            edge: "be followed by a second like it, not",
            expected: DUMMY.to_owned(),
            found: tail(found),
        };
        let block = two.strip_prefix(&one).ok_or_else(|| edge(&two))?.to_owned();
        let system = one.strip_suffix(&block).ok_or_else(|| edge(&one))?.to_owned();
        let asked = tokenizer
            .render(std::slice::from_ref(&dummy), &Render { add_generation_prompt: true, ..bare })?
            .text;
        let generation = asked.strip_prefix(&one).unwrap_or_default().to_owned();
        if generation.is_empty() {
            return Err(MaskError::NoGenerationPrompt { tail: tail(&asked) });
        }
        Ok(Self { dummy, system, block, generation })
    }
}
