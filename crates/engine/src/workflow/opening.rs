//! What an episode begins with: the messages, tools or tokens that its data gives.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

use crate::episode::{Data, EpisodeError};
use crate::generate::Message;

/// The data's `messages`, or its `prompt`, which is a text or a list of messages; `tools`; `input_ids`.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Empty only where there are tokens.
    pub messages: Vec<Message>,
    /// A list of JSON schemas.
    pub tools: Option<Box<RawValue>>,
    /// Tokens to go on from as they are, whatever the messages say.
    pub input_ids: Option<Vec<i32>>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    input_ids: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
}

impl Opening {
    /// `system` is said first, unless the data begins with a system message of its own.
    pub fn read(data: &Data, system: Option<&str>) -> Result<Self, EpisodeError> {
        let json = data.json().get();
        let wire: Wire<'_> = serde_json::from_str(json)
            .map_err(|error| EpisodeError::BadData(format!("the data is not understood: {error}")))?;
        let input_ids = wire.input_ids.map(read_ids).transpose()?;
        let mut messages = match (wire.messages, wire.prompt) {
            (Some(list), _) => read_messages("messages", list)?,
            (None, Some(prompt)) => read_prompt(prompt)?,
            (None, None) if input_ids.is_some() => Vec::new(),
            (None, None) => {
                return Err(EpisodeError::BadData(format!(
                    "the data has no field \"messages\", \"prompt\" or \"input_ids\"; it has {}",
                    shown(&data.fields().keys().cloned().collect::<Vec<_>>().join(", "))
                )));
            }
        };
        let has_system = messages.first().is_some_and(|first| role(first).as_deref() == Some("system"));
        if let Some(system) = system.filter(|_| !has_system && !messages.is_empty()) {
            messages.insert(0, message("system", system));
        }
        let tools = wire.tools.map(read_tools).transpose()?;
        Ok(Self { messages, tools, input_ids })
    }
}

/// A message of plain text.
pub fn message(role: &str, content: &str) -> Message {
    to_raw_value(&json!({ "role": role, "content": content })).expect("two texts are JSON")
}

/// Who says it.
pub fn role(message: &RawValue) -> Option<String> {
    serde_json::from_str::<Role<'_>>(message.get()).ok().map(|read| read.role.into_owned())
}

/// What it says; the texts of its parts, where it is made of parts.
pub fn content(message: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        content: Option<Content<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content<'a> {
        #[serde(borrow)]
        Text(Cow<'a, str>),
        Parts(Vec<Part>),
        Other(IgnoredAny),
    }
    #[derive(Deserialize)]
    struct Part {
        #[serde(default)]
        text: String,
    }
    match serde_json::from_str::<Wire<'_>>(message.get()).ok().and_then(|wire| wire.content) {
        Some(Content::Text(text)) => text.into_owned(),
        Some(Content::Parts(parts)) => parts.into_iter().map(|part| part.text).collect(),
        Some(Content::Other(_)) | None => String::new(),
    }
}

fn read_prompt(prompt: &RawValue) -> Result<Vec<Message>, EpisodeError> {
    match serde_json::from_str::<String>(prompt.get()) {
        Ok(text) => Ok(vec![message("user", &text)]),
        Err(_) if prompt.get().starts_with('[') => read_messages("prompt", prompt),
        Err(_) => Err(wrong("prompt", prompt, "a text or a list of messages")),
    }
}

fn read_messages(field: &str, list: &RawValue) -> Result<Vec<Message>, EpisodeError> {
    let messages: Vec<Message> =
        serde_json::from_str(list.get()).map_err(|_| wrong(field, list, "a list of messages"))?;
    if messages.is_empty() {
        return Err(wrong(field, list, "a list of at least one message"));
    }
    for (index, said) in messages.iter().enumerate() {
        if role(said).is_none() {
            return Err(wrong(&format!("{field}[{index}]"), said, "an object with a role"));
        }
    }
    Ok(messages)
}

fn read_tools(tools: &RawValue) -> Result<Box<RawValue>, EpisodeError> {
    match serde_json::from_str::<Vec<serde_json::Map<String, serde_json::Value>>>(tools.get()) {
        Ok(_) => Ok(tools.to_owned()),
        Err(_) => Err(wrong("tools", tools, "a list of JSON schemas")),
    }
}

fn read_ids(ids: &RawValue) -> Result<Vec<i32>, EpisodeError> {
    let read: Vec<i32> = serde_json::from_str(ids.get()).unwrap_or_default();
    if read.is_empty() || read.iter().any(|id| *id < 0) {
        return Err(wrong("input_ids", ids, "a list of at least one token id, each from 0"));
    }
    Ok(read)
}

fn wrong(field: &str, found: &RawValue, expected: &str) -> EpisodeError {
    EpisodeError::BadData(format!("field \"{field}\" is {}, but must be {expected}", shown(found.get())))
}

/// Its beginning: prompts are long, and messages are read by people.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, system: Option<&str>) -> Result<Opening, String> {
        Opening::read(&Data::parse(json).unwrap(), system).map_err(|error| error.to_string())
    }

    #[test]
    fn a_prompt_is_a_text_or_messages_or_tokens() {
        let user = r#"{"content":"hi","role":"user"}"#;
        for (json, system, expect) in [
            (r#"{"prompt": "hi"}"#, None, vec![user]),
            (r#"{"prompt": [{"role": "user", "x": 1.50}]}"#, None, vec![r#"{"role": "user", "x": 1.50}"#]),
            (r#"{"messages": [{"role":"user"}], "prompt": "no"}"#, None, vec![r#"{"role":"user"}"#]),
            (r#"{"prompt": "hi"}"#, Some("be"), vec![r#"{"content":"be","role":"system"}"#, user]),
            (r#"{"messages": [{"role":"system"}]}"#, Some("be"), vec![r#"{"role":"system"}"#]),
            (r#"{"input_ids": [1, 2]}"#, Some("be"), vec![]),
        ] {
            let opening = read(json, system).unwrap();
            let messages: Vec<_> = opening.messages.iter().map(|said| said.get()).collect();
            assert_eq!(messages, expect, "{json}");
        }
        assert_eq!(read(r#"{"input_ids": [1, 2]}"#, None).unwrap().input_ids, Some(vec![1, 2]));
    }

    #[test]
    fn a_wrong_field_is_named_with_its_value() {
        for (json, expect) in [
            (r#"{"answer": 1}"#, r#"no field "messages", "prompt" or "input_ids"; it has answer"#),
            (r#"{"prompt": 5}"#, r#"field "prompt" is 5, but must be a text or a list of messages"#),
            (r#"{"messages": "hi"}"#, r#"field "messages" is "hi", but must be a list"#),
            (r#"{"messages": []}"#, "at least one message"),
            (r#"{"messages": [{"role":"user"}, 7]}"#, r#"field "messages[1]" is 7, but must be an object"#),
            (r#"{"prompt": [{"content":"x"}]}"#, r#"field "prompt[0]" is {"content":"x"}"#),
            (r#"{"prompt": "x", "tools": {}}"#, r#"field "tools" is {}, but must be a list of JSON schemas"#),
            (r#"{"input_ids": [1, -1]}"#, r#"field "input_ids" is [1, -1], but must be"#),
            (r#"{"input_ids": []}"#, "at least one token id"),
        ] {
            let error = read(json, None).unwrap_err();
            assert!(error.contains(expect), "{json}: {error}");
        }
    }

    #[test]
    fn content_is_a_text_or_the_texts_of_parts() {
        for (json, expect) in [
            (r#"{"content": "a\nb"}"#, "a\nb"),
            (r#"{"content": [{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}"#, "ab"),
            (r#"{"content": null}"#, ""),
            (r#"{"content": 5}"#, ""),
            (r#"{}"#, ""),
        ] {
            let message: Message = serde_json::from_str(json).unwrap();
            assert_eq!(content(&message), expect, "{json}");
        }
    }
}
