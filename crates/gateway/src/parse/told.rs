//! What was told of an answer so far, and the white space that is not told yet.
//!
//! Templates write white space between thoughts, words and calls, and models learn to write it too. It belongs to
//! neither, but that is known only when something follows: until then it is held back.

use std::mem;

use super::Heard;
use crate::tell::{Call, Piece};

#[derive(Debug, Default)]
pub(super) struct Told {
    /// Since the last time.
    pieces: Vec<Piece>,
    heard: Heard,
    first_call: usize,
    /// Behind the words.
    space: String,
    /// Behind the thought.
    lines: String,
    /// The thought at hand has text.
    thinking: bool,
    /// A thought or a call came before: newlines at the beginning of the words belong to it.
    follows: bool,
    /// Nothing but space came after the last call.
    ends_in_call: bool,
}

/// A call as it was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) name: String,
    /// A JSON object.
    pub(super) arguments: String,
}

impl Told {
    pub(super) fn new(first_call: usize) -> Self {
        Self { first_call, ..Self::default() }
    }

    pub(super) fn content(&mut self, text: &str) {
        let (words, space) = text.split_at_checked(text.trim_end().len()).unwrap_or((text, ""));
        if !words.is_empty() {
            let lead = words.len() - words.trim_start().len();
            let (lead, words) = words.split_at_checked(lead).unwrap_or(("", words));
            self.space(lead);
            let before = mem::take(&mut self.space);
            self.say(&before);
            self.say(words);
            self.ends_in_call = false;
        }
        self.space(space);
    }

    /// What stands between words, between calls, or between both: told only if words follow.
    pub(super) fn space(&mut self, space: &str) {
        let leads = self.follows && self.heard.content.is_empty() && self.space.is_empty();
        self.space.push_str(if leads { space.trim_start_matches('\n') } else { space });
    }

    pub(super) fn has_words(&self) -> bool {
        !self.heard.content.is_empty()
    }

    pub(super) fn begin_thought(&mut self) {
        self.forget_lead();
        self.thinking = false;
    }

    pub(super) fn thought_is_empty(&self) -> bool {
        !self.thinking
    }

    /// Without the newlines around it, as templates take a thought apart.
    pub(super) fn reasoning(&mut self, text: &str) {
        let text = if self.thinking { text } else { text.trim_start_matches('\n') };
        let (words, lines) = text.split_at_checked(text.trim_end_matches('\n').len()).unwrap_or((text, ""));
        if !words.is_empty() {
            if !self.thinking && self.heard.reasoning.is_some() {
                self.think("\n");
            }
            self.thinking = true;
            let before = mem::take(&mut self.lines);
            self.think(&before);
            self.think(words);
        }
        self.lines.push_str(lines);
    }

    pub(super) fn end_thought(&mut self) {
        self.lines.clear();
        self.follows = true;
    }

    pub(super) fn call(&mut self, call: Written) {
        self.forget_lead();
        self.follows = true;
        self.ends_in_call = true;
        let index = self.heard.calls.len();
        let id = call_id(self.first_call + index);
        let Written { name, arguments } = call;
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.pieces.push(Piece::CallBegun { index, id: id.clone(), name: name.clone() });
        self.pieces.push(Piece::CallArguments { index, json: arguments.clone() });
        self.heard.calls.push(Call { id, name, arguments });
    }

    pub(super) fn malformed(&mut self, text: &str, reason: String) {
        self.content(text);
        self.heard.malformed.push(reason);
    }

    pub(super) fn take(&mut self) -> Vec<Piece> {
        mem::take(&mut self.pieces)
    }

    pub(super) fn finish(mut self) -> (Vec<Piece>, Heard) {
        // A thought that was cut off had more to come, and so has its newlines.
        let lines = mem::take(&mut self.lines);
        self.think(&lines);
        if !self.ends_in_call {
            let space = mem::take(&mut self.space);
            self.say(&space);
        }
        (self.pieces, self.heard)
    }

    /// Space before the first words is nobody's, once something else comes.
    fn forget_lead(&mut self) {
        if self.heard.content.is_empty() {
            self.space.clear();
        }
    }

    fn say(&mut self, text: &str) {
        self.heard.content.push_str(text);
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Content(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Content(text.to_owned())),
        }
    }

    fn think(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.heard.reasoning.get_or_insert_default().push_str(text);
        match self.pieces.last_mut() {
            Some(Piece::Reasoning(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Reasoning(text.to_owned())),
        }
    }
}

/// Nine characters, as the templates of Mistral want it; the engine's workflows count the same way.
fn call_id(index: usize) -> String {
    format!("call{:05}", index % 100_000)
}
