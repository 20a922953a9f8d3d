//! Where the answers stand in the rendering of a whole conversation.
//!
//! An engine that is asked for an answer is given the messages before it and the generation prompt; what it
//! then has to write is the answer. So the proof of a place in the whole is that the template writes there
//! what it writes at the end of that shorter conversation. Templates shorten earlier turns when more follow
//! (they drop reasoning), so that the two differ further ahead; each answer is therefore looked for in three
//! ways, of which the first that holds is taken:
//!
//! 1. *By prefix*: the shorter conversation is a prefix of the whole.
//! 2. *By the answer before*: what the template puts between two answers follows the earlier one.
//! 3. *By removal*: the whole without the answer is the whole with one stretch cut out, and that stretch
//!    begins with the generation prompt.
//!
//! Where none holds, the answer cannot be told from its surroundings, which is an error.

use std::ops::Range;

use super::error::{head, tail};
use super::{MaskError, is_assistant, render};
use crate::tokens::Tokenizer;
use crate::tokens::template::{Message, Render};

/// What a model generated for one message, as bytes of the whole rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) message: usize,
    pub(super) bytes: Range<usize>,
}

/// Opens and closes a block of reasoning; some templates put one in the generation prompt or before the last
/// answer, but not in earlier turns.
const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

/// The answers of a conversation whose rendering is `whole`.
pub(super) fn answers(
    tokenizer: &Tokenizer,
    messages: &[Message],
    how: &Render<'_>,
    whole: &str,
) -> Result<Vec<Answer>, MaskError> {
    let mut found: Vec<Answer> = Vec::new();
    let mut before: Option<Shorter> = None;
    for (message, _) in messages.iter().enumerate().filter(|(_, said)| is_assistant(said)) {
        if message == 0 {
            return Err(MaskError::Unprompted { message });
        }
        let search = Search { tokenizer, messages, how, whole, message };
        let shorter = search.shorter()?;
        let from = found.last().map_or(0, |answer| answer.bytes.end);
        let bytes = search
            .by_prefix(&shorter)
            .or_else(|| search.by_answer_before(&shorter, before.as_ref()?, from))
            .or_else(|| search.by_removal(&shorter, from))
            .ok_or_else(|| search.parts(&shorter))?;
        found.push(Answer { message, bytes });
        before = Some(shorter);
    }
    Ok(found)
}

/// The conversation up to an answer.
struct Shorter {
    /// Without the answer, with the generation prompt.
    asked: String,
    /// With the answer.
    said: String,
}

impl Shorter {
    /// The text that makes the model answer: all of it, and without an opened block of reasoning.
    fn asked_ways(&self) -> impl Iterator<Item = &str> {
        let opened = self.asked.rfind(THINK).filter(|at| is_block(self.asked.get(*at..).unwrap_or_default()));
        let bare = opened.and_then(|at| self.asked.get(..at));
        std::iter::once(self.asked.as_str()).chain(bare)
    }

    /// The answer as it is written at the end: all of it, and without a block of reasoning at its beginning.
    fn answer_ways(&self) -> impl Iterator<Item = &str> {
        self.asked_ways().filter_map(|asked| self.said.strip_prefix(asked)).flat_map(|answer| {
            let block = answer.strip_prefix(THINK).and_then(|rest| rest.split_once(THINK_END));
            let rest = block.map(|(_, rest)| rest.trim_start_matches('\n')).filter(|rest| !rest.is_empty());
            std::iter::once(answer).chain(rest)
        })
    }
}

/// Whether nothing but a block of reasoning, empty or opened, is left of a generation prompt.
fn is_block(text: &str) -> bool {
    text.replace(THINK, "").replace(THINK_END, "").trim().is_empty()
}

struct Search<'a> {
    tokenizer: &'a Tokenizer,
    messages: &'a [Message],
    how: &'a Render<'a>,
    whole: &'a str,
    message: usize,
}

impl Search<'_> {
    fn shorter(&self) -> Result<Shorter, MaskError> {
        let asking = Render { add_generation_prompt: true, ..*self.how };
        let asked = render(self.tokenizer, self.before(), &asking)?.text;
        let is_last = self.message + 1 == self.messages.len();
        let said = if is_last {
            self.whole.to_owned()
        } else {
            let with = self.messages.get(..=self.message).unwrap_or_default();
            render(self.tokenizer, with, self.how)?.text
        };
        Ok(Shorter { asked, said })
    }

    fn before(&self) -> &[Message] {
        self.messages.get(..self.message).unwrap_or_default()
    }

    fn by_prefix(&self, shorter: &Shorter) -> Option<Range<usize>> {
        let starts = shorter.asked_ways().filter(|asked| self.whole.starts_with(asked)).map(str::len);
        self.first_answer(shorter, starts)
    }

    /// The text between the answer before and this one, as the shorter conversation has it, follows the
    /// former in the whole.
    fn by_answer_before(&self, shorter: &Shorter, before: &Shorter, from: usize) -> Option<Range<usize>> {
        let rest = self.whole.get(from..)?;
        let between = |asked: &'_ str| -> Option<usize> {
            let answered = before
                .asked_ways()
                .filter_map(|way| asked.strip_prefix(way))
                .flat_map(|tail| before.answer_ways().filter_map(move |answer| tail.strip_prefix(answer)));
            answered.filter(|between| rest.starts_with(between)).map(|between| from + between.len()).next()
        };
        self.first_answer(shorter, shorter.asked_ways().filter_map(between))
    }

    /// The first start where the answer stands in the whole as the shorter conversation has it.
    fn first_answer(&self, shorter: &Shorter, starts: impl Iterator<Item = usize>) -> Option<Range<usize>> {
        let stands_at = |start: usize| {
            let rest = self.whole.get(start..)?;
            let mut ways = shorter.answer_ways();
            ways.find(|answer| rest.starts_with(answer)).map(|answer| start..start + answer.len())
        };
        starts.into_iter().find_map(stands_at)
    }

    fn by_removal(&self, shorter: &Shorter, from: usize) -> Option<Range<usize>> {
        let after = self.messages.get(self.message + 1..)?;
        let rest: Vec<Message> = self.before().iter().chain(after).cloned().collect();
        let plain = self.tokenizer.render(self.before(), self.how).ok()?.text;
        let prompts: Vec<&str> = shorter
            .asked_ways()
            .filter_map(|asked| asked.strip_prefix(plain.as_str()))
            .filter(|prompt| !prompt.is_empty())
            .collect();
        let without = self.tokenizer.render(&rest, self.how).ok()?.text;
        let len = self.whole.len().checked_sub(without.len())?;
        // The stretch may begin anywhere from where the tails agree to where the heads part.
        let first = without.len().saturating_sub(shared_tail(self.whole, &without)).max(from);
        let mut found = None;
        for start in first..=shared_head(self.whole, &without) {
            let Some(stretch) = self.whole.get(start..start + len) else { continue };
            let Some(prompt) = prompts.iter().find(|prompt| stretch.starts_with(**prompt)) else { continue };
            // Two places that both fit prove neither.
            if found.replace(start + prompt.len()..start + len).is_some() {
                return None;
            }
        }
        found
    }

    /// Where the shorter conversation and the whole part.
    fn parts(&self, shorter: &Shorter) -> MaskError {
        let alone = if self.whole.starts_with(&shorter.asked) { &shorter.said } else { &shorter.asked };
        let at = shared_head(self.whole, alone);
        let around = |text: &str| {
            let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
            format!("{}{}", tail(before), head(after))
        };
        let hint = if shorter.said.contains(THINK) {
            "; \"qwen3\" renders every message by itself and keeps its reasoning"
        } else {
            ""
        };
        let (alone, whole) = (around(alone), around(self.whole));
        MaskError::Rewritten { message: self.message, at, alone, whole, hint }
    }
}

/// How many bytes two texts share at their beginning, to a whole character.
fn shared_head(one: &str, other: &str) -> usize {
    let mut shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    while !(one.is_char_boundary(shared) && other.is_char_boundary(shared)) {
        shared -= 1;
    }
    shared
}

/// How many bytes two texts share at their end.
fn shared_tail(one: &str, other: &str) -> usize {
    one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count()
}
