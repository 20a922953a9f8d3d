//! Looks at the messages of a chat and passes them on as they were written.
//!
//! What a message says is the template's business. Here it is only made sure that there is somebody who says it, and
//! that there is nothing but text.

use rollyard_engine::generate::Message;
use serde_json::value::RawValue;

use super::super::fields::{Fields, is_text};
use super::super::said::{self, Texts};
use crate::refusal::Refusal;

const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];
const WANT: &str = "a list of messages, at least one";

pub(super) fn read_all(body: &Fields<'_>) -> Result<Vec<Message>, Refusal> {
    body.need("messages", WANT)?;
    let messages = body.list("messages", WANT)?.unwrap_or_default();
    if messages.is_empty() {
        return Err(body.wrong("messages", WANT));
    }
    let read = |(nth, raw)| read(format!("messages[{nth}]"), raw);
    messages.into_iter().enumerate().map(read).collect()
}

fn read(path: String, raw: &RawValue) -> Result<Message, Refusal> {
    let line = Fields::of(path, raw, "an object with a role")?;
    let role = said::role(&line, &ROLES)?;
    match line.raw("content") {
        Some(content) if !is_text(content) => drop(Texts::read(&line.at("content"), content, &["text"])?),
        _ => {}
    }
    if role == "developer" {
        // OpenAI's newer word for the system; no template knows it.
        return Ok(replaced(raw, line.need("role", "a role")?, "\"system\""));
    }
    Ok(raw.to_owned())
}

/// The same with another value at the place of `value`, which is borrowed from `whole`.
fn replaced(whole: &RawValue, value: &RawValue, other: &str) -> Message {
    let (text, part) = (whole.get(), value.get());
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let (head, tail) = (text.get(..start), text.get(start + part.len()..));
    let text = [head.unwrap_or_default(), other, tail.unwrap_or_default()].concat();
    RawValue::from_string(text).expect("JSON with one value replaced by another is JSON")
}
