//! Tells a response in events.
//!
//! An item is added, grows by deltas, and is done when something else begins. What it came to is told again with its
//! last events and with the whole response, so the items are kept until the end.

use serde::Serialize;

use super::super::openai::{Failure, TokenLogprob};
use super::super::{Tells, openai, wire};
use super::answer::{self, Frame, Response};
use super::item::{Body, Item, Part, Status};
use crate::ask::Ask;
use crate::refusal::Refusal;
use crate::tell::{Begun, Ended, Piece, Spelled, Spoken};

#[derive(Debug)]
pub(in super::super) struct Stream {
    frame: Frame,
    items: Vec<Item>,
    /// Tokens since the last words: a log-prob can only be told with words.
    untold: Vec<Spelled>,
    ended: Option<Ended>,
    sequence: Sequence,
}

/// Counts the events.
#[derive(Debug, Default)]
struct Sequence(u64);

/// What can be said of an item.
#[derive(Serialize)]
struct About<'a> {
    r#type: &'static str,
    sequence_number: u64,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<u32>,
    #[serde(flatten)]
    told: Told<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Told<'a> {
    Item(&'a Item),
    Part(Part<'a>),
    Delta(&'a str),
    Text(&'a str),
    Arguments(&'a str),
    #[serde(untagged)]
    Words {
        delta: &'a str,
        logprobs: Vec<TokenLogprob<'a>>,
    },
    #[serde(untagged)]
    AllWords {
        text: &'a str,
        logprobs: Vec<TokenLogprob<'a>>,
    },
}

impl Stream {
    pub(in super::super) fn new(begun: Begun, ask: &Ask) -> Self {
        let frame = Frame::new(begun, ask);
        Self { frame, items: Vec::new(), untold: Vec::new(), ended: None, sequence: Sequence::default() }
    }

    fn hear(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        match piece {
            Piece::Reasoning(text) if text.is_empty() => {}
            Piece::Reasoning(delta) => {
                if !matches!(self.items.last(), Some(Item { body: Body::Thoughts(_), .. })) {
                    self.add(Body::Thoughts(String::new()), out);
                }
                self.grow(self.items.len().saturating_sub(1), delta, out);
            }
            Piece::Content(text) if text.is_empty() => {}
            Piece::Content(delta) => {
                if !matches!(self.items.last(), Some(Item { body: Body::Message { .. }, .. })) {
                    self.add(Body::Message { text: String::new(), tokens: Vec::new() }, out);
                }
                self.grow(self.items.len().saturating_sub(1), delta, out);
            }
            Piece::CallBegun { index, id, name } => {
                let (call_id, name) = (id.clone(), name.clone());
                self.add(Body::Call { index: *index, call_id, name, arguments: String::new() }, out);
            }
            Piece::CallArguments { json, .. } if json.is_empty() => {}
            Piece::CallArguments { index: wanted, json } => {
                let is_it = |item: &Item| matches!(&item.body, Body::Call { index, .. } if index == wanted);
                if let Some(place) = self.items.iter().rposition(is_it) {
                    self.grow(place, json, out);
                }
            }
        }
    }

    fn add(&mut self, body: Body, out: &mut Vec<u8>) {
        self.finish(Status::Completed, out);
        let place = self.items.len();
        let item = Item::new(&self.frame.begun.id, place, body);
        self.sequence.tell("response.output_item.added", place, None, Told::Item(&item), out);
        if let Some(part) = item.part() {
            self.sequence.tell("response.content_part.added", place, Some(&item), Told::Part(part), out);
        }
        self.items.push(item);
    }

    fn grow(&mut self, place: usize, delta: &str, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(place) else { return };
        let (name, fresh) = match &mut item.body {
            Body::Thoughts(text) => {
                text.push_str(delta);
                ("response.reasoning_text.delta", None)
            }
            Body::Message { text, tokens } => {
                text.push_str(delta);
                let told = tokens.len();
                tokens.append(&mut self.untold);
                ("response.output_text.delta", Some(told))
            }
            Body::Call { arguments, .. } => {
                arguments.push_str(delta);
                ("response.function_call_arguments.delta", None)
            }
        };
        let told = match (&item.body, fresh) {
            (Body::Message { tokens, .. }, Some(told)) => {
                let logprobs = tokens.iter().skip(told).map(TokenLogprob::from).collect();
                Told::Words { delta, logprobs }
            }
            _ => Told::Delta(delta),
        };
        self.sequence.tell(name, place, Some(item), told, out);
    }

    /// Nothing more comes to the last item.
    fn finish(&mut self, status: Status, out: &mut Vec<u8>) {
        let place = self.items.len().saturating_sub(1);
        let Some(item) = self.items.last_mut() else { return };
        item.status = status;
        let (name, told) = match &item.body {
            Body::Thoughts(text) => ("response.reasoning_text.done", Told::Text(text)),
            Body::Message { text, tokens } => {
                let logprobs = tokens.iter().map(TokenLogprob::from).collect();
                ("response.output_text.done", Told::AllWords { text, logprobs })
            }
            Body::Call { arguments, .. } => {
                ("response.function_call_arguments.done", Told::Arguments(arguments))
            }
        };
        self.sequence.tell(name, place, Some(item), told, out);
        if let Some(part) = item.part() {
            self.sequence.tell("response.content_part.done", place, Some(item), Told::Part(part), out);
        }
        self.sequence.tell("response.output_item.done", place, None, Told::Item(item), out);
    }
}

impl Tells for Stream {
    fn begin(&mut self, out: &mut Vec<u8>) {
        for name in ["response.created", "response.in_progress"] {
            self.sequence.tell_all(name, &self.frame.response(&self.items, None), out);
        }
    }

    fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        self.untold.extend_from_slice(&spoken.tokens);
        for piece in &spoken.pieces {
            self.hear(piece, out);
        }
    }

    fn end(&mut self, ended: &Ended, out: &mut Vec<u8>) {
        let is_due = |item: &Item| !matches!(item.body, Body::Thoughts(_));
        if !self.items.iter().any(is_due) {
            // Agents look for a message, even one without words.
            self.add(Body::Message { text: String::new(), tokens: Vec::new() }, out);
        }
        if let Some(Item { body: Body::Message { tokens, .. }, .. }) = self.items.last_mut() {
            tokens.append(&mut self.untold);
        }
        self.finish(answer::status(ended.stop), out);
        self.ended = Some(ended.clone());
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let whole = self.frame.response(&self.items, self.ended.as_ref());
        let cut = self.ended.as_ref().is_some_and(|ended| answer::status(ended.stop) == Status::Incomplete);
        let name = if cut { "response.incomplete" } else { "response.completed" };
        self.sequence.tell_all(name, &whole, out);
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        /// The event has the reason in itself; clients look for it in an object `error`.
        #[derive(Serialize)]
        struct Failed<'a> {
            r#type: &'static str,
            sequence_number: u64,
            code: Option<&'static str>,
            message: &'a str,
            param: Option<&'a str>,
            error: openai::Error<'a>,
        }
        let Failure { error } = Failure::from(refusal);
        let openai::Error { message, param, code, .. } = error;
        let sequence_number = self.sequence.next();
        wire::event("error", &Failed { r#type: "error", sequence_number, code, message, param, error }, out);
    }
}

impl Sequence {
    fn next(&mut self) -> u64 {
        let number = self.0;
        self.0 += 1;
        number
    }

    fn tell(
        &mut self,
        name: &'static str,
        output_index: usize,
        within: Option<&Item>,
        told: Told<'_>,
        out: &mut Vec<u8>,
    ) {
        let about = About {
            r#type: name,
            sequence_number: self.next(),
            output_index,
            item_id: within.map(|item| item.id.as_str()),
            content_index: within.filter(|item| item.has_parts()).map(|_| 0),
            told,
        };
        wire::event(name, &about, out);
    }

    fn tell_all(&mut self, name: &'static str, response: &Response<'_>, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Event<'a> {
            r#type: &'static str,
            sequence_number: u64,
            response: &'a Response<'a>,
        }
        wire::event(name, &Event { r#type: name, sequence_number: self.next(), response }, out);
    }
}
