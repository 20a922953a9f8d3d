//! What was said before, turned into messages in chat form.
//!
//! Texts go from the body into the message as they were written, quotes and escapes and all: nothing is decoded.

use rollyard_engine::generate::Message;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::fields::{Fields, is_text, list, wrong};
use crate::refusal::Refusal;

/// The texts of one content: a text if it is one, a list of parts if there are more.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts<'a>(pub(super) Vec<&'a RawValue>);

/// What the model said in one go: thoughts, words and calls.
#[derive(Debug, Default)]
pub(super) struct Turn<'a> {
    pub(super) thoughts: Thoughts<'a>,
    pub(super) texts: Texts<'a>,
    pub(super) calls: Vec<Called<'a>>,
}

/// They are one text in a message, however many pieces they came in.
#[derive(Debug, Default)]
pub(super) struct Thoughts<'a>(pub(super) Vec<&'a RawValue>);

#[derive(Debug)]
pub(super) struct Called<'a> {
    pub(super) id: &'a RawValue,
    pub(super) name: &'a RawValue,
    pub(super) arguments: Arguments<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Arguments<'a> {
    /// JSON in a text, as it was given.
    Text(&'a RawValue),
    /// JSON that becomes a text.
    Json(&'a str),
}

#[derive(Serialize)]
struct Line<'a> {
    role: &'static str,
    content: Option<&'a Texts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a Thoughts<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [Called<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a RawValue>,
}

impl Turn<'_> {
    pub(super) fn message(&self) -> Message {
        // Only beside calls may there be no words at all.
        let silent = self.texts.0.is_empty() && !self.calls.is_empty();
        written(&Line {
            content: (!silent).then_some(&self.texts),
            reasoning_content: (!self.thoughts.0.is_empty()).then_some(&self.thoughts),
            tool_calls: &self.calls,
            ..Line::new("assistant", &self.texts)
        })
    }
}

pub(super) fn message(role: &'static str, texts: &Texts<'_>) -> Message {
    written(&Line::new(role, texts))
}

/// What a tool gave back.
pub(super) fn result(call_id: &RawValue, texts: &Texts<'_>) -> Message {
    written(&Line { tool_call_id: Some(call_id), ..Line::new("tool", texts) })
}

impl<'a> Texts<'a> {
    /// A text, or a list of parts of these types that have a text.
    pub(super) fn read(path: &str, raw: &'a RawValue, kinds: &[&str]) -> Result<Self, Refusal> {
        if is_text(raw) {
            return Ok(Self(vec![raw]));
        }
        let parts = list(path, raw, "a text or a list of parts")?;
        let read = |(nth, raw)| part(&part_at(path, nth, raw)?, kinds);
        parts.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }
}

pub(super) fn part_at<'a>(path: &str, nth: usize, raw: &'a RawValue) -> Result<Fields<'a>, Refusal> {
    Fields::of(format!("{path}[{nth}]"), raw, "an object with a type")
}

/// The text of a part that is of one of these types.
pub(super) fn part<'a>(part: &Fields<'a>, kinds: &[&str]) -> Result<&'a RawValue, Refusal> {
    let kind = part.needed_text("type")?;
    if kinds.contains(&kind.as_str()) {
        return part.needed_raw_text(if kind == "refusal" { "refusal" } else { "text" });
    }
    Err(unreadable(part, &kind, kinds))
}

pub(super) fn unreadable(part: &Fields<'_>, kind: &str, kinds: &[&str]) -> Refusal {
    let medium = match kind {
        "image" | "image_url" | "input_image" => "an image",
        "audio" | "audio_url" | "input_audio" => "audio",
        "video" | "video_url" | "input_video" => "a video",
        "file" | "input_file" => "a file",
        "document" => "a document",
        _ => return part.wrong("type", &one_of(kinds)),
    };
    let path = part.path();
    Refusal::field(path, format!("{path} is {medium}, but the model here reads text only"))
}

/// For a refusal: the words that could stand there.
pub(super) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    if words.len() > 1 { format!("one of {}", quoted.join(", ")) } else { quoted.concat() }
}

/// Whoever says it, as a word of this list.
pub(super) fn role(said: &Fields<'_>, roles: &[&'static str]) -> Result<&'static str, Refusal> {
    let raw = said.need("role", &one_of(roles))?;
    let text: Option<String> = serde_json::from_str(raw.get()).ok();
    let known = text.and_then(|text| roles.iter().copied().find(|role| *role == text));
    known.ok_or_else(|| wrong(said.at("role"), raw, &one_of(roles)))
}

impl<'a> Line<'a> {
    fn new(role: &'static str, texts: &'a Texts<'a>) -> Self {
        Self { role, content: Some(texts), reasoning_content: None, tool_calls: &[], tool_call_id: None }
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Part<'a> {
            r#type: &'static str,
            text: &'a RawValue,
        }
        match self.0.as_slice() {
            [] => serializer.serialize_str(""),
            [text] => text.serialize(serializer),
            texts => serializer.collect_seq(texts.iter().map(|text| Part { r#type: "text", text })),
        }
    }
}

impl<'a> Serialize for Thoughts<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [text] => text.serialize(serializer),
            // Joined as they were written, by an escaped newline: nothing is decoded, so nothing can fail.
            texts => {
                let bare = |text: &&'a RawValue| {
                    let text = text.get();
                    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
                };
                let joined = format!("\"{}\"", texts.iter().map(bare).collect::<Vec<_>>().join("\\n"));
                RawValue::from_string(joined).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl Serialize for Called<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<'a> {
            id: &'a RawValue,
            r#type: &'static str,
            function: Function<'a>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a RawValue,
            arguments: &'a Arguments<'a>,
        }
        let function = Function { name: self.name, arguments: &self.arguments };
        Call { id: self.id, r#type: "function", function }.serialize(serializer)
    }
}

fn written(line: &Line<'_>) -> Message {
    to_raw_value(line).expect("a message of JSON texts is JSON")
}
