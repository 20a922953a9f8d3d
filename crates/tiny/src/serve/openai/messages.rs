//! A conversation as clients of OpenAI send it, made into the tokens that the model goes on from.

use rollyard_core::tokens::Tokenizer;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

use super::super::refusal::{Refusal, shown};
use crate::engine::chat_tokens;

type Fields = BTreeMap<String, Box<RawValue>>;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

#[derive(Deserialize)]
struct Part {
    r#type: Option<String>,
    text: Option<String>,
}

pub(super) fn tokens(
    messages: Option<&[Box<RawValue>]>,
    tools: Option<&RawValue>,
    tokenizer: &Tokenizer,
) -> Result<Vec<i32>, Refusal> {
    let messages = messages.filter(|messages| !messages.is_empty()).ok_or_else(|| {
        Refusal::missing("messages", "a list like [{\"role\": \"user\", \"content\": \"12+3\"}]")
    })?;
    let read = |(index, raw)| message(&format!("messages[{index}]"), raw);
    let messages = messages.iter().map(AsRef::as_ref).enumerate().map(read);
    let messages: Vec<Box<RawValue>> = messages.collect::<Result<_, _>>()?;
    chat_tokens(tokenizer, &messages, tools)
        .map_err(|error| Refusal::bad("messages", format!("field \"messages\": {error}")))
}

/// Whether the answer may call tools, and the tools that the template is told of.
pub(super) fn tools<'a>(
    tools: Option<&'a RawValue>,
    choice: Option<&Value>,
) -> Result<Option<&'a RawValue>, Refusal> {
    let count = match tools.map(|raw| serde_json::from_str::<Vec<Value>>(raw.get())) {
        None => 0,
        Some(Ok(list)) => {
            let nameless = |tool: &&Value| !tool.pointer("/function/name").is_some_and(Value::is_string);
            if let Some(tool) = list.iter().find(nameless) {
                let want = "a list of {\"type\": \"function\", \"function\": {\"name\": …}}";
                return Err(Refusal::wrong("tools", format!("a list with {}", shown(tool)), want));
            }
            list.len()
        }
        Some(Err(_)) => {
            return Err(Refusal::wrong("tools", tools.map(shown).unwrap_or_default(), "a list of functions"));
        }
    };
    match choice.map(|choice| (choice, choice.as_str())) {
        None | Some((_, Some("auto"))) => Ok(tools.filter(|_| count > 0)),
        Some((_, Some("none"))) => Ok(None),
        Some((choice, _)) => {
            let want = "\"none\" or \"auto\": this model cannot be made to call a tool";
            Err(Refusal::wrong("tool_choice", shown(choice), want))
        }
    }
}

/// The same message with its content as one text.
fn message(field: &str, raw: &RawValue) -> Result<Box<RawValue>, Refusal> {
    let wrong = |field: &str, raw: &RawValue, want: &str| Refusal::wrong(field, shown(raw), want);
    let fields: Result<Fields, _> = serde_json::from_str(raw.get());
    let mut fields =
        fields.map_err(|_| wrong(field, raw, "an object like {\"role\": \"user\", \"content\": \"…\"}"))?;
    let (role_field, content_field) = (format!("{field}.role"), format!("{field}.content"));
    let want = format!("one of {}", ROLES.join(", "));
    let role = fields.get("role").ok_or_else(|| Refusal::missing(&role_field, &want))?;
    let name: Option<String> = serde_json::from_str(role.get()).ok();
    match name.as_deref().filter(|name| ROLES.contains(name)) {
        None => return Err(wrong(&role_field, role, &want)),
        // What OpenAI calls the system's messages by now; no template knows the word.
        Some("developer") => put(&mut fields, "role", "system"),
        Some(_) => {}
    }
    let Some(content) = fields.get("content") else { return written(&fields) };
    match content.get().trim_start().chars().next() {
        Some('"' | 'n') => {}
        Some('[') => {
            let text = joined(&content_field, content)?;
            put(&mut fields, "content", &text);
        }
        _ => return Err(wrong(&content_field, content, "a text or a list of texts")),
    }
    written(&fields)
}

fn joined(field: &str, content: &RawValue) -> Result<String, Refusal> {
    let parts: Result<Vec<&RawValue>, _> = serde_json::from_str(content.get());
    let parts = parts.map_err(|_| Refusal::wrong(field, shown(content), "a text or a list of texts"))?;
    let mut texts = Vec::with_capacity(parts.len());
    for (index, raw) in parts.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let part: Option<Part> = serde_json::from_str(raw.get()).ok();
        match part.map(|part| (part.r#type, part.text)) {
            Some((Some(kind), Some(text))) if kind == "text" => texts.push(text),
            Some((Some(kind), _)) if kind != "text" => {
                let message =
                    format!("field {field:?} is of type {:?}, but this model reads text only", shown(kind));
                return Err(Refusal { code: "unsupported", ..Refusal::bad(&field, message) });
            }
            _ => {
                return Err(Refusal::wrong(&field, shown(raw), "like {\"type\": \"text\", \"text\": \"…\"}"));
            }
        }
    }
    Ok(texts.join("\n"))
}

fn put(fields: &mut Fields, name: &str, text: &str) {
    let text = to_raw_value(text).expect("a text can be written as JSON");
    fields.insert(name.to_owned(), text);
}

fn written(fields: &Fields) -> Result<Box<RawValue>, Refusal> {
    Ok(to_raw_value(fields).expect("what was read as JSON can be written as JSON"))
}
