//! One rollout out of a line that somebody else wrote.
//!
//! Files come in the viewer's format, as our own archive, as yard items, dumps, verl's and slime's files and traces of
//! prime-rl, and none of them keeps to its format. Nothing here fails: what is not understood is kept as it is,
//! counted and shown raw.

use bytes::Bytes;
use serde_json::{Map, Value};

/// Who says something in a rollout, as search and the reader tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    System,
    User,
    Assistant,
    Reasoning,
    ToolCall,
    ToolResult,
}

/// A stretch of text of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of the messages.
    pub message: usize,
    pub channel: Channel,
    pub text: String,
}

/// The bytes of one row, and where they lie.
#[derive(Clone, Debug)]
pub struct Body {
    /// As they stand in the file, without the line's end.
    pub raw: Bytes,
    pub url: String,
    /// From 1.
    pub line: u64,
    pub offset: u64,
}

/// A rollout as every reader sees it, whatever the file's format was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Objects with at least `role` and `content`; whatever else they had is still there.
    pub messages: Vec<Value>,
    pub attributes: Map<String, Value>,
    pub timestamp: Option<Value>,
    /// Every other field of the row.
    pub rest: Map<String, Value>,
}

impl Body {
    /// The rollout, or why the row is none.
    pub fn rollout(&self) -> Result<Rollout, String> {
        unimplemented!()
    }

    /// All text, in order, told apart by channel: `<think>` and its like are reasoning.
    pub fn pieces(&self) -> Result<Vec<Piece>, String> {
        unimplemented!()
    }
}
