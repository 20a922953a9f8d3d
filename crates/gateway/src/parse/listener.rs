//! Hears one answer while it comes.

use serde_json::value::RawValue;
use std::mem;

use super::Heard;
use super::channels::Channels;
use super::grammar::{Grammar, Syntax};
use super::marked::Marked;
use super::schema::Tools;
use super::told::Told;
use crate::tell::Piece;

/// One answer while it comes.
#[derive(Debug)]
pub struct Listener {
    told: Told,
    /// May be the beginning of a mark.
    held: String,
    ear: Ear,
}

#[derive(Debug)]
enum Ear {
    Marked(Marked),
    Channels(Channels),
}

impl Listener {
    /// `tools` is a list in OpenAI's form; without it nothing is a call, and the marks of calls are text.
    /// `prompt_end` are the last characters of the rendered prompt: it may have opened a thought.
    /// `first_call` numbers the first call, for ids that no other call of the conversation has.
    pub fn new(grammar: &Grammar, tools: Option<&RawValue>, prompt_end: &str, first_call: usize) -> Self {
        let tools = tools.map(Tools::new);
        let mut told = Told::new(first_call);
        let ear = match grammar.syntax() {
            Syntax::Marks(marks) => Ear::Marked(Marked::new(marks, tools, prompt_end, &mut told)),
            Syntax::Channels => Ear::Channels(Channels::new(tools, prompt_end)),
        };
        Self { told, held: String::new(), ear }
    }

    /// Hears more text, with special tokens spelled out, and says what is certain now.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let joined;
        let text = match self.held.is_empty() {
            true => text,
            false => {
                joined = mem::take(&mut self.held) + text;
                &joined
            }
        };
        let held = match &mut self.ear {
            Ear::Marked(ear) => ear.hear(text, &mut self.told),
            Ear::Channels(ear) => ear.hear(text, &mut self.told),
        };
        self.held.push_str(held);
        self.told.take()
    }

    /// The answer is over: says the rest, and all of it.
    pub fn finish(mut self) -> (Vec<Piece>, Heard) {
        match self.ear {
            Ear::Marked(ear) => ear.finish(&self.held, &mut self.told),
            Ear::Channels(ear) => ear.finish(&self.held, &mut self.told),
        }
        self.told.finish()
    }
}
