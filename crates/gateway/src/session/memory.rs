//! Recognises messages that an agent sends again.
//!
//! An agent sends the whole conversation with every call, and its framework has often written our answers anew: with
//! other spaces in the arguments of a call, with `null` where nothing stood, without the thoughts. So a message has a
//! *sense*, which is the same for all of these. A text that was seen before is not read again: it costs a hash.

use rollyard_engine::generate::Message;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A message of a session. Kept once, however often it is sent.
#[derive(Debug)]
pub struct Known {
    /// As a template reads it: the arguments of calls are objects.
    pub json: Box<RawValue>,
    /// Of the text as it was sent.
    pub raw: u128,
    /// Of what it means.
    pub sense: u128,
    pub role: Role,
    /// It carries thoughts.
    pub thinks: bool,
}

impl Known {
    pub fn read(message: &RawValue) -> Self {
        let raw = xxh3_128(message.get().as_bytes());
        let mut fields: Map<String, Value> = serde_json::from_str(message.get()).unwrap_or_default();
        let was_parts = join_parts(&mut fields);
        let role = match fields.get("role").and_then(Value::as_str) {
            Some("assistant") => Role::Assistant,
            Some("tool" | "function") => Role::Tool,
            Some("user") => Role::User,
            _ => Role::System,
        };
        let mut sense = Xxh3::new();
        if role == Role::Assistant {
            assistant(&fields, &mut sense)
        } else {
            object(&fields, &mut sense)
        }
        let thinks = ["reasoning_content", "reasoning", "thinking"].iter().any(|name| {
            fields.get(*name).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
        });
        Self { json: for_template(message, &fields, was_parts), raw, sense: sense.digest128(), role, thinks }
    }
}

/// All messages of a session by the text they were sent as.
#[derive(Debug, Default)]
pub struct Memory {
    known: HashMap<u128, Arc<Known>>,
}

impl Memory {
    pub fn know(&mut self, message: &Message) -> Arc<Known> {
        let raw = xxh3_128(message.get().as_bytes());
        Arc::clone(self.known.entry(raw).or_insert_with(|| Arc::new(Known::read(message))))
    }

    pub fn get(&self, raw: u128) -> Option<&Arc<Known>> {
        self.known.get(&raw)
    }

    /// One that was read elsewhere.
    pub fn keep(&mut self, message: &Arc<Known>) {
        self.known.entry(message.raw).or_insert_with(|| Arc::clone(message));
    }

    /// Bytes it takes.
    pub fn size_bytes(&self) -> usize {
        let each = size_of::<Known>() + size_of::<(u128, Arc<Known>)>() * 2;
        self.known.values().map(|known| known.json.get().len() + each).sum()
    }
}

/// Where a conversation stands: everything that was said so far, and with which tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing(pub u128);

impl Standing {
    /// Before the first message. Another set of tools is another prompt from its beginning on.
    pub fn at_first(tools: Option<&RawValue>, template_kwargs: &Map<String, Value>) -> Self {
        let mut hash = Xxh3::new();
        if let Some(tools) = tools {
            hash.update(tools.get().as_bytes());
        }
        object(template_kwargs, &mut hash);
        Self(hash.digest128())
    }

    pub fn after(self, message: &Known) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&self.0.to_le_bytes());
        hash.update(&message.sense.to_le_bytes());
        Self(hash.digest128())
    }

    /// The same question once more: asked here, in these words.
    pub fn question(self, sampling: &str) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(&self.0.to_le_bytes());
        hash.update(sampling.as_bytes());
        hash.digest128()
    }
}

/// What an answer means is what it says and calls. Ids of calls are ours, thoughts are in the tokens.
fn assistant(fields: &Map<String, Value>, hash: &mut Xxh3) {
    hash.update(b"assistant");
    text_of(fields.get("content").and_then(Value::as_str).unwrap_or_default().trim(), hash);
    for call in fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").unwrap_or(call);
        text_of(function.get("name").and_then(Value::as_str).unwrap_or_default(), hash);
        match function.get("arguments") {
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(arguments) => value(&arguments, hash),
                Err(_) => text_of(text.trim(), hash),
            },
            Some(arguments) => value(arguments, hash),
            None => value(&Value::Object(Map::new()), hash),
        }
    }
}

fn text_of(text: &str, hash: &mut Xxh3) {
    hash.update(&text.len().to_le_bytes());
    hash.update(text.as_bytes());
}

/// In the order of names, without what is null.
fn object(fields: &Map<String, Value>, hash: &mut Xxh3) {
    let mut named: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    named.sort_by_key(|(name, _)| *name);
    hash.update(b"{");
    for (name, field) in named {
        text_of(name, hash);
        value(field, hash);
    }
    hash.update(b"}");
}

fn value(found: &Value, hash: &mut Xxh3) {
    match found {
        Value::Object(fields) => object(fields, hash),
        Value::Array(list) => {
            hash.update(b"[");
            list.iter().for_each(|one| value(one, hash));
            hash.update(b"]");
        }
        Value::String(text) => {
            hash.update(b"\"");
            text_of(text, hash);
        }
        other => text_of(&other.to_string(), hash),
    }
}

/// A text in parts is one text, a line for each: most templates read nothing else. Says whether it was in parts.
fn join_parts(fields: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(parts)) = fields.get("content") else { return false };
    let texts = parts.iter().map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)));
    let Some(texts) = texts.collect::<Option<Vec<&str>>>() else { return false };
    let joined = texts.join("\n");
    fields.insert("content".to_owned(), joined.into());
    true
}

/// Templates read the arguments of a call as an object, clients send them as a text.
fn for_template(message: &RawValue, fields: &Map<String, Value>, was_parts: bool) -> Box<RawValue> {
    let is_text = |call: &Value| call.pointer("/function/arguments").is_some_and(Value::is_string);
    let calls = fields.get("tool_calls").and_then(Value::as_array);
    if !calls.is_some_and(|calls| calls.iter().any(is_text)) {
        let joined = || to_raw_value(fields).expect("fields are JSON");
        return if was_parts { joined() } else { message.to_owned() };
    }
    // Read once more with its numbers and the order of its fields as they were written.
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        function: Function<'a>,
    }
    #[derive(Deserialize)]
    struct Function<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        tool_calls: Vec<Call<'a>>,
    }
    let Ok(wire) = serde_json::from_str::<Wire<'_>>(message.get()) else { return message.to_owned() };
    let mut fields = fields.clone();
    fields.remove("tool_calls");
    fields.retain(|_, value| !value.is_null());
    let mut calls = Vec::with_capacity(wire.tool_calls.len());
    for call in wire.tool_calls {
        let given = call.function.arguments.map(RawValue::get).unwrap_or("{}");
        let text: Option<String> = serde_json::from_str(given).ok();
        let arguments = match text.as_deref().map(str::trim) {
            Some("") => "{}".to_owned(),
            // A text that is no JSON is the agent's own affair: it stays a text.
            Some(text) if serde_json::from_str::<&RawValue>(text).is_ok() => text.to_owned(),
            _ => given.to_owned(),
        };
        let id = call.id.map_or("null", RawValue::get);
        let name = call.function.name.get();
        calls.push(format!(
            r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
        ));
    }
    let rest = serde_json::to_string(&fields).unwrap_or_else(|_| "{}".to_owned());
    let rest = rest.strip_suffix('}').unwrap_or(&rest);
    let joined = format!(r#"{rest},"tool_calls":[{}]}}"#, calls.join(","));
    RawValue::from_string(joined).unwrap_or_else(|_| message.to_owned())
}

/// A message that was made here.
pub fn made(message: &Value) -> Arc<Known> {
    Arc::new(Known::read(&to_raw_value(message).expect("a value is JSON")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sense(message: &Value) -> u128 {
        made(message).sense
    }

    #[test]
    fn an_answer_is_recognised_however_a_framework_writes_it() {
        let call = |arguments: Value| json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}]);
        let ours = json!({"role": "assistant", "content": "Let me see.", "reasoning_content": "hm",
            "tool_calls": call(json!({"x": 1, "y": "z"}))});
        for same in [
            json!({"role": "assistant", "content": "Let me see.", "tool_calls": call(json!("{\"y\": \"z\",  \"x\": 1}")),
                "refusal": null, "annotations": []}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "Let me see.\n"}],
                "tool_calls": [{"id": "other", "function": {"name": "f", "arguments": {"y": "z", "x": 1}}}]}),
        ] {
            assert_eq!(sense(&same), sense(&ours), "{same}");
        }
        for other in [
            json!({"role": "assistant", "content": "Let me see", "tool_calls": call(json!({"x": 1, "y": "z"}))}),
            json!({"role": "assistant", "content": "Let me see.", "tool_calls": call(json!({"x": 2, "y": "z"}))}),
            json!({"role": "assistant", "content": "Let me see."}),
            json!({"role": "user", "content": "Let me see."}),
        ] {
            assert_ne!(sense(&other), sense(&ours), "{other}");
        }
        let null = json!({"role": "assistant", "content": null, "tool_calls": call(json!("{}"))});
        let empty = json!({"role": "assistant", "content": "", "tool_calls": call(json!({}))});
        assert_eq!(sense(&null), sense(&empty));
    }

    #[test]
    fn arguments_become_objects_with_their_numbers_as_written() {
        let message: Message = serde_json::from_str(
            r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1.50, \"a\": 2}"}}]}"#,
        )
        .unwrap();
        let known = Known::read(&message);
        assert!(known.json.get().contains(r#""arguments":{"z": 1.50, "a": 2}"#), "{}", known.json.get());
        let broken = made(&json!({"role": "assistant", "content": "",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{oops"}}]}));
        assert!(broken.json.get().contains(r#""arguments":"{oops""#), "{}", broken.json.get());
    }

    #[test]
    fn a_text_in_parts_is_one_text() {
        let parts = |texts: &[&str]| {
            let parts: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            made(&json!({"role": "user", "content": parts}))
        };
        let plain = made(&json!({"role": "user", "content": "a\nb"}));
        let same = parts(&["a", "b"]);
        assert_eq!(same.sense, plain.sense);
        assert_eq!(serde_json::from_str::<Value>(same.json.get()).unwrap()["content"], "a\nb");
        assert_eq!(parts(&["a"]).sense, made(&json!({"role": "user", "content": "a"})).sense);
    }

    #[test]
    fn a_message_is_kept_once() {
        let mut memory = Memory::default();
        let message: Message = serde_json::from_str(r#"{"role": "user", "content": "hi"}"#).unwrap();
        let first = memory.know(&message);
        assert!(Arc::ptr_eq(&first, &memory.know(&message)));
        assert_eq!(first.role, Role::User);
    }
}
