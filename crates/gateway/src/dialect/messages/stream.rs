//! Tells a message in events: each block is started, grows by deltas, and is stopped when another starts.

use serde::Serialize;
use std::borrow::Cow;

use super::super::{Tells, wire};
use super::answer::{self, Block, Message, Usage};
use super::failure::Failure;
use crate::refusal::Refusal;
use crate::tell::{Begun, Ended, Piece, Spoken};

#[derive(Debug)]
pub(in super::super) struct Stream {
    begun: Begun,
    /// Those that were started; the last is open until another is.
    blocks: Vec<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    Call(u32),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: usize, content_block: Block<'a> },
    ContentBlockDelta { index: usize, delta: Delta<'a> },
    ContentBlockStop { index: usize },
    MessageDelta { delta: Stopped<'a>, usage: Usage },
    MessageStop,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Delta<'a> {
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
}

#[derive(Serialize)]
struct Stopped<'a> {
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
}

impl Stream {
    pub(in super::super) fn new(begun: Begun) -> Self {
        Self { begun, blocks: Vec::new() }
    }

    fn hear(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        match piece {
            Piece::Reasoning(thinking) if !thinking.is_empty() => {
                self.start(Kind::Thinking, Block::Thinking { thinking: "", signature: "" }, out);
                self.grow(Kind::Thinking, Delta::Thinking { thinking }, out);
            }
            Piece::Content(text) if !text.is_empty() => {
                self.start(Kind::Text, Block::Text { text: "" }, out);
                self.grow(Kind::Text, Delta::Text { text }, out);
            }
            Piece::CallBegun { index, id, name } => {
                let input = Cow::Owned(answer::empty());
                self.start(Kind::Call(*index), Block::ToolUse { id, name, input }, out);
            }
            Piece::CallArguments { index, json } if !json.is_empty() => {
                self.grow(Kind::Call(*index), Delta::InputJson { partial_json: json }, out);
            }
            Piece::Reasoning(_) | Piece::Content(_) | Piece::CallArguments { .. } => {}
        }
    }

    /// Unless it is the one that is open.
    fn start(&mut self, kind: Kind, content_block: Block<'_>, out: &mut Vec<u8>) {
        if self.blocks.last() != Some(&kind) {
            self.stop(out);
            let index = self.blocks.len();
            self.blocks.push(kind);
            tell(&Event::ContentBlockStart { index, content_block }, out);
        }
    }

    fn grow(&self, kind: Kind, delta: Delta<'_>, out: &mut Vec<u8>) {
        if let Some(index) = self.blocks.iter().rposition(|block| *block == kind) {
            tell(&Event::ContentBlockDelta { index, delta }, out);
        }
    }

    fn stop(&self, out: &mut Vec<u8>) {
        if let Some(index) = self.blocks.len().checked_sub(1) {
            tell(&Event::ContentBlockStop { index }, out);
        }
    }
}

impl Tells for Stream {
    fn begin(&mut self, out: &mut Vec<u8>) {
        tell(&Event::MessageStart { message: Message::begun(&self.begun) }, out);
    }

    fn speak(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        for piece in &spoken.pieces {
            self.hear(piece, out);
        }
    }

    fn end(&mut self, ended: &Ended, out: &mut Vec<u8>) {
        self.stop(out);
        let (stop_reason, stop_sequence) = (answer::stop_reason(ended), ended.stop_text.as_deref());
        let usage = Usage::new(&self.begun, ended.completion_tokens);
        tell(&Event::MessageDelta { delta: Stopped { stop_reason, stop_sequence }, usage }, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        tell(&Event::MessageStop, out);
    }

    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>) {
        wire::event("error", &Failure::from(refusal), out);
    }
}

fn tell(event: &Event<'_>, out: &mut Vec<u8>) {
    let name = match event {
        Event::MessageStart { .. } => "message_start",
        Event::ContentBlockStart { .. } => "content_block_start",
        Event::ContentBlockDelta { .. } => "content_block_delta",
        Event::ContentBlockStop { .. } => "content_block_stop",
        Event::MessageDelta { .. } => "message_delta",
        Event::MessageStop => "message_stop",
    };
    wire::event(name, event, out);
}
