//! A row as it lies in its file, and the rollout that it says.

use super::detect::{self, Detection};
use super::fields::Fields;
use super::json::{Node, Reader};
use super::{Channel, shape};
use bytes::Bytes;
use serde_json::{Map, Value};

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

/// A stretch of text of one message. The pieces of a message's content, put together, are that content: marks such
/// as `<think>` stay in the reasoning they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of the messages.
    pub message: usize,
    pub channel: Channel,
    pub text: String,
}

impl Body {
    /// The rollout, or why the row is none.
    pub fn rollout(&self) -> Result<Rollout, String> {
        self.with_row(|row| {
            let turns = shape::turns(row);
            let used = |name: &str| !turns.is_empty() && shape::CONVERSATION.contains(&name);
            let attributes = row.get("attributes").filter(|node| node.is_object());
            let mut rest = row.to_map();
            rest.retain(|name, _| !used(name) && name != "timestamp");
            if attributes.is_some() {
                rest.remove("attributes");
            }
            Rollout {
                messages: turns.iter().map(|turn| turn.to_value()).collect(),
                attributes: attributes.map(Node::to_map).unwrap_or_default(),
                timestamp: row.get("timestamp").map(Node::to_value),
                rest,
            }
        })
    }

    /// All text, in order, told apart by channel: `<think>` and its like are reasoning.
    pub fn pieces(&self) -> Result<Vec<Piece>, String> {
        self.with_row(|row| {
            let mut pieces = Vec::new();
            for (message, turn) in shape::turns(row).iter().enumerate() {
                turn.pieces(&mut |channel, text| {
                    pieces.push(Piece { message, channel, text: text.to_owned() })
                });
            }
            pieces
        })
    }

    /// Signs that its reward was not won by the task, and where they stand.
    pub fn detections(&self) -> Result<Vec<Detection>, String> {
        let pieces = self.pieces()?;
        self.with_row(|row| detect::detections(row, Fields::new(row).reward(), &pieces))
    }

    fn with_row<T>(&self, read: impl FnOnce(Node<'_>) -> T) -> Result<T, String> {
        let text = String::from_utf8_lossy(&self.raw);
        let mut reader = Reader::default();
        let row = reader.read(text.trim_start_matches('\u{feff}'))?;
        if !row.is_object() {
            return Err("the row is JSON, but no object".to_owned());
        }
        Ok(read(row))
    }
}
