//! The conversation in a row, whatever it is called there.
//!
//! | written by | conversation |
//! |---|---|
//! | the viewer's format, our archive, yard items | `messages` |
//! | dumps | `prompt`, `completion` as text |
//! | verl | `input`, `output` as text |
//! | slime | `prompt` as text or messages, `response` as text |
//! | verifiers, prime-rl | `prompt`, `completion` as messages; else the last step of `trajectory` |
//! | ShareGPT | `conversations` with `from` and `value` |

use super::Channel;
use super::json::{Node, Said};
use super::reasoning;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// One message.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'t> {
    pub role: &'t str,
    /// Whose text it is, as far as its role says.
    pub channel: Channel,
    /// The object, if it was one.
    message: Option<Node<'t>>,
    content: Option<Node<'t>>,
}

/// The keys of a row that hold its conversation. They are not told again among the rest.
pub const CONVERSATION: [&str; 8] =
    ["messages", "prompt", "completion", "response", "input", "output", "conversations", "trajectory"];

/// In order. Empty if there is none that we know.
pub fn turns(row: Node<'_>) -> Vec<Turn<'_>> {
    for list in ["messages", "conversations"] {
        if let Some(messages) = row.get(list).filter(|messages| matches!(messages.said(), Said::List)) {
            return messages.items().map(|message| Turn::of(message, "user")).collect();
        }
    }
    let both = two_sides(row);
    if !both.is_empty() {
        return both;
    }
    // Each step begins with all that went before.
    row.get("trajectory").and_then(|steps| steps.items().last()).map(two_sides).unwrap_or_default()
}

fn two_sides(row: Node<'_>) -> Vec<Turn<'_>> {
    let find = |names: [&str; 3]| names.iter().find_map(|name| row.get(name).filter(|node| !node.is_null()));
    let (asked, answered) =
        (find(["prompt", "input", "question"]), find(["completion", "response", "output"]));
    if answered.is_none() && row.get("prompt").is_none() && row.get("input").is_none() {
        return Vec::new();
    }
    let mut turns = side(asked, "user");
    turns.extend(side(answered, "assistant"));
    turns
}

fn side<'t>(node: Option<Node<'t>>, role: &'static str) -> Vec<Turn<'t>> {
    match node {
        None => Vec::new(),
        Some(list) if matches!(list.said(), Said::List) => {
            list.items().map(|message| Turn::of(message, role)).collect()
        }
        Some(other) => vec![Turn::of(other, role)],
    }
}

fn channel_of(role: &str) -> Channel {
    match role {
        "system" | "developer" => Channel::System,
        "assistant" | "gpt" | "model" | "ai" | "bot" => Channel::Assistant,
        "tool" | "function" | "ipython" | "environment" | "observation" => Channel::ToolResult,
        _ => Channel::User,
    }
}

impl<'t> Turn<'t> {
    fn of(message: Node<'t>, otherwise: &'static str) -> Self {
        if !message.is_object() {
            return Self {
                role: otherwise,
                channel: channel_of(otherwise),
                message: None,
                content: Some(message),
            };
        }
        let named = message.get("role").or_else(|| message.get("from")).and_then(Node::str);
        let role = named.unwrap_or(otherwise);
        let content = message.get("content").or_else(|| message.get("value")).or_else(|| message.get("text"));
        Self { role, channel: channel_of(role), message: Some(message), content }
    }

    pub fn is_answer(&self) -> bool {
        self.channel == Channel::Assistant
    }

    /// A role that is none of the format, or no message at all.
    pub fn is_odd(&self) -> bool {
        let is_text = self.content.is_some_and(|content| matches!(content.said(), Said::Str(_)));
        let is_known = matches!(self.role, "user" | "human") || self.channel != Channel::User;
        !is_known || (self.message.is_none() && !is_text)
    }

    /// As every reader expects it: an object with a role and content.
    pub fn to_value(self) -> Value {
        let mut message = match self.message {
            Some(message) => message.to_map(),
            None => Map::new(),
        };
        message.entry("role").or_insert_with(|| json!(self.role));
        if !message.contains_key("content") {
            message.insert("content".to_owned(), self.content.map_or(Value::Null, Node::to_value));
        }
        Value::Object(message)
    }

    pub fn tool_calls(&self) -> usize {
        let listed = self
            .message
            .and_then(|message| message.get("tool_calls"))
            .map_or(0, |calls| calls.items().count());
        let is_use = |part: &Node<'_>| part.get("type").and_then(Node::str) == Some("tool_use");
        listed + self.content.map_or(0, |content| content.items().filter(is_use).count())
    }

    /// Calls `piece` with all text in order. Says whether a block of reasoning is never closed.
    pub fn pieces(&self, piece: &mut dyn FnMut(Channel, &str)) -> bool {
        let thoughts = ["reasoning_content", "reasoning", "thinking"];
        if let Some(message) = self.message {
            for thought in thoughts.iter().filter_map(|name| message.get(name)).filter_map(Node::str) {
                piece(Channel::Reasoning, thought);
            }
        }
        let mut unclosed = false;
        if let Some(content) = self.content {
            unclosed = self.content_pieces(content, piece);
        }
        for call in
            self.message.and_then(|message| message.get("tool_calls")).into_iter().flat_map(Node::items)
        {
            let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
            piece(Channel::ToolCall, &call_text(function, ["arguments", "input"]));
        }
        unclosed
    }

    fn content_pieces(&self, content: Node<'t>, piece: &mut dyn FnMut(Channel, &str)) -> bool {
        match content.said() {
            Said::Null => false,
            Said::Str(text) => self.text(text, piece),
            Said::List => {
                let mut unclosed = false;
                for part in content.items() {
                    unclosed |= self.part(part, piece);
                }
                unclosed
            }
            Said::Object => self.part(content, piece),
            _ => {
                piece(self.channel, &content.to_value().to_string());
                false
            }
        }
    }

    fn text(&self, text: &str, piece: &mut dyn FnMut(Channel, &str)) -> bool {
        if !self.is_answer() {
            piece(self.channel, text);
            return false;
        }
        reasoning::split(text, |part, is_reasoning| {
            piece(if is_reasoning { Channel::Reasoning } else { Channel::Assistant }, part);
        })
    }

    /// One of the parts that content may be a list of.
    fn part(&self, part: Node<'t>, piece: &mut dyn FnMut(Channel, &str)) -> bool {
        if let Some(text) = part.str() {
            return self.text(text, piece);
        }
        let text = |name: &str| part.get(name).and_then(Node::str);
        let kind = text("type").unwrap_or("text");
        match kind {
            "thinking" | "reasoning" => {
                if let Some(thought) = text("thinking").or(text("reasoning")).or(text("text")) {
                    piece(Channel::Reasoning, thought);
                }
            }
            "tool_use" => piece(Channel::ToolCall, &call_text(part, ["input", "arguments"])),
            "tool_result" => match part.get("content") {
                Some(result) => {
                    let result_turn = Turn { channel: Channel::ToolResult, ..*self };
                    result_turn.content_pieces(result, piece);
                }
                None => piece(Channel::ToolResult, ""),
            },
            _ => match text("text") {
                Some(text) => return self.text(text, piece),
                // An image has no text, but one sees that it was there.
                None => piece(self.channel, &format!("[{kind}]")),
            },
        }
        false
    }
}

/// The name and the arguments, as one would write a call.
fn call_text(call: Node<'_>, arguments: [&str; 2]) -> String {
    let name = call.get("name").and_then(Node::str).unwrap_or("?");
    let arguments = arguments.iter().find_map(|name| call.get(name));
    let text = match arguments.map(|arguments| (arguments.str(), arguments)) {
        None => Cow::Borrowed(""),
        Some((Some(text), _)) => Cow::Borrowed(text),
        Some((None, other)) => Cow::Owned(other.to_value().to_string()),
    };
    format!("{name} {text}")
}
