//! Where the answers stand in the rendering of a whole conversation.
//!
//! Three proofs, tried in this order for each answer:
//!
//! 1. The messages before it, with the generation prompt, render to a prefix of the whole, and so do the
//!    messages up to and with it. What lies between is the answer: an engine that is given the first text
//!    has to generate just that. A template may do without a generation prompt.
//! 2. The whole without the answer is the whole with one stretch cut out, and that stretch begins with the
//!    generation prompt. This holds where a template shortens earlier turns (drops their reasoning), which
//!    breaks the first proof.
//! 3. Neither: the answer cannot be told from its surroundings, which is an error.

use std::ops::Range;

use super::error::{head, tail};
use super::{MaskError, is_assistant, render};
use crate::tokens::Tokenizer;
use crate::tokens::template::{Message, Render};

/// What a model generated for one message, as bytes of the whole rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) message: usize,
    /// Where its turn begins, with the generation prompt.
    pub(super) turn: usize,
    pub(super) bytes: Range<usize>,
}

/// Opens a block of reasoning; some templates put it in the generation prompt but not in earlier turns.
const THINK: &str = "<think>";

/// The answers of a conversation whose rendering is `whole`.
pub(super) fn answers(
    tokenizer: &Tokenizer,
    messages: &[Message],
    how: &Render<'_>,
    whole: &str,
) -> Result<Vec<Answer>, MaskError> {
    let mut answers = Vec::new();
    let mut from = 0;
    for (message, said) in messages.iter().enumerate() {
        if !is_assistant(said) {
            continue;
        }
        let search = Search { tokenizer, messages, how, whole, message };
        if message == 0 {
            return Err(MaskError::Unprompted { message });
        }
        let answer = match search.by_prefix() {
            Ok(answer) => answer,
            Err(failure) => search.by_removal(from)?.ok_or_else(|| failure.into_error(&search))?,
        };
        from = answer.bytes.end;
        answers.push(answer);
    }
    Ok(answers)
}

struct Search<'a> {
    tokenizer: &'a Tokenizer,
    messages: &'a [Message],
    how: &'a Render<'a>,
    whole: &'a str,
    message: usize,
}

/// A rendering that is not a prefix of the whole, or none at all.
enum NoPrefix {
    Parts { rendered: String },
    Refused(MaskError),
}

impl Search<'_> {
    fn before(&self) -> &[Message] {
        self.messages.get(..self.message).unwrap_or_default()
    }

    fn with(&self) -> &[Message] {
        self.messages.get(..=self.message).unwrap_or_default()
    }

    fn asking(&self) -> Render<'_> {
        Render { add_generation_prompt: true, ..*self.how }
    }

    /// The length of a rendering that the whole begins with.
    fn prefix(&self, messages: &[Message], how: &Render<'_>) -> Result<usize, NoPrefix> {
        let rendered = render(self.tokenizer, messages, how).map_err(NoPrefix::Refused)?.text;
        if self.whole.starts_with(&rendered) { Ok(rendered.len()) } else { Err(NoPrefix::Parts { rendered }) }
    }

    fn by_prefix(&self) -> Result<Answer, NoPrefix> {
        let start = self.prefix(self.before(), &self.asking())?;
        let is_last = self.message + 1 == self.messages.len();
        let end = if is_last { self.whole.len() } else { self.prefix(self.with(), self.how)? };
        if end < start {
            let rendered = self.whole.get(..end).unwrap_or_default().to_owned();
            return Err(NoPrefix::Parts { rendered });
        }
        Ok(Answer { message: self.message, turn: start, bytes: start..end })
    }

    /// `None` where the whole without the message is not the whole with a stretch cut out.
    fn by_removal(&self, from: usize) -> Result<Option<Answer>, MaskError> {
        let Some(prompts) = self.generation_prompts() else { return Ok(None) };
        let rest: Vec<Message> = self.before().iter().chain(self.after()).cloned().collect();
        let Ok(without) = self.tokenizer.render(&rest, self.how) else { return Ok(None) };
        let without = without.text;
        let Some(len) = self.whole.len().checked_sub(without.len()) else { return Ok(None) };
        // The stretch may begin anywhere from where the tails agree to where the heads part.
        let shared = shared_head(self.whole, &without);
        let tails = shared_tail(self.whole, &without);
        let first = (without.len() - tails.min(without.len())).max(from);
        let mut found = None;
        for start in (first..=shared).filter(|start| self.whole.is_char_boundary(*start)) {
            let Some(stretch) = self.whole.get(start..start + len) else { continue };
            let Some(prompt) = prompts.iter().find(|prompt| stretch.starts_with(prompt.as_str())) else {
                continue;
            };
            // Two places that both fit prove neither.
            if found.is_some() {
                return Ok(None);
            }
            let bytes = start + prompt.len()..start + len;
            found = Some(Answer { message: self.message, turn: start, bytes });
        }
        Ok(found)
    }

    fn after(&self) -> &[Message] {
        self.messages.get(self.message + 1..).unwrap_or_default()
    }

    /// What the template adds to make the model answer here: all of it, and without an opened block of
    /// reasoning. `None` if it adds nothing, or refuses.
    fn generation_prompts(&self) -> Option<Vec<String>> {
        let plain = self.tokenizer.render(self.before(), self.how).ok()?.text;
        let asked = self.tokenizer.render(self.before(), &self.asking()).ok()?.text;
        let prompt = asked.strip_prefix(&plain).filter(|prompt| !prompt.is_empty())?;
        let mut prompts = vec![prompt.to_owned()];
        if let Some((header, _)) = prompt.split_once(THINK)
            && !header.is_empty()
        {
            prompts.push(header.to_owned());
        }
        Some(prompts)
    }
}

impl NoPrefix {
    fn into_error(self, search: &Search<'_>) -> MaskError {
        let rendered = match self {
            Self::Refused(error) => return error,
            Self::Parts { rendered } => rendered,
        };
        let at = shared_head(search.whole, &rendered);
        let around = |text: &str| {
            let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
            format!("{}{}", tail(before), head(after))
        };
        let hint = if rendered.contains(THINK) {
            "; \"qwen3\" renders every message by itself and keeps its reasoning"
        } else {
            ""
        };
        let (alone, whole) = (around(&rendered), around(search.whole));
        MaskError::Rewritten { message: search.message, at, alone, whole, hint }
    }
}

/// How many bytes two texts share at their beginning, to a whole character.
fn shared_head(one: &str, other: &str) -> usize {
    let mut shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    while !one.is_char_boundary(shared) {
        shared -= 1;
    }
    shared
}

/// How many bytes two texts share at their end.
fn shared_tail(one: &str, other: &str) -> usize {
    one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count()
}
