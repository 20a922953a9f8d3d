//! Turns messages made of blocks into messages in chat form.
//!
//! What tools gave back is part of the user's message here, and in a chat a message for each tool before it.

use rollyard_engine::generate::Message;
use serde_json::value::RawValue;

use super::super::fields::{Fields, is_text, list};
use super::super::said::{self, Arguments, Called, Texts, Turn};
use crate::refusal::Refusal;

const WANT: &str = "a list of messages, at least one";
const WANT_CONTENT: &str = "a text or a list of blocks";
const ROLES: [&str; 3] = ["user", "assistant", "system"];

pub(super) fn read_all(body: &Fields<'_>) -> Result<Vec<Message>, Refusal> {
    body.need("messages", WANT)?;
    let list = body.list("messages", WANT)?.unwrap_or_default();
    if list.is_empty() {
        return Err(body.wrong("messages", WANT));
    }
    let mut messages = Vec::with_capacity(list.len() + 1);
    if let Some(system) = body.raw("system") {
        let texts = Texts::read("system", system, &["text"])?;
        // Some clients always send a list, if only an empty one.
        messages.extend((!texts.0.is_empty()).then(|| said::message("system", &texts)));
    }
    for (nth, raw) in list.into_iter().enumerate() {
        let message = Fields::of(format!("messages[{nth}]"), raw, "an object with a role")?;
        let role = said::role(&message, &ROLES)?;
        let content = Content { path: message.at("content"), raw: message.need("content", WANT_CONTENT)? };
        match role {
            "assistant" => messages.push(content.turn()?.message()),
            "user" => content.user(&mut messages)?,
            role => messages.push(said::message(role, &Texts::read(&content.path, content.raw, &["text"])?)),
        }
    }
    Ok(messages)
}

struct Content<'a> {
    path: String,
    raw: &'a RawValue,
}

impl<'a> Content<'a> {
    fn blocks(&self) -> Result<Vec<Fields<'a>>, Refusal> {
        let blocks = list(&self.path, self.raw, WANT_CONTENT)?;
        blocks.into_iter().enumerate().map(|(nth, raw)| said::part_at(&self.path, nth, raw)).collect()
    }

    fn turn(&self) -> Result<Turn<'a>, Refusal> {
        let mut turn = Turn::default();
        if is_text(self.raw) {
            turn.texts.0.push(self.raw);
            return Ok(turn);
        }
        for block in self.blocks()? {
            match block.needed_text("type")?.as_str() {
                "text" => turn.texts.0.push(block.needed_raw_text("text")?),
                "thinking" => turn.thoughts.0.push(block.needed_raw_text("thinking")?),
                // Nobody here can read it.
                "redacted_thinking" => {}
                "tool_use" => turn.calls.push(call(&block)?),
                kind => return Err(said::unreadable(&block, kind, &["text", "thinking", "tool_use"])),
            }
        }
        Ok(turn)
    }

    fn user(&self, messages: &mut Vec<Message>) -> Result<(), Refusal> {
        let mut texts = Texts::default();
        let mut results = 0;
        if is_text(self.raw) {
            texts.0.push(self.raw);
        } else {
            for block in self.blocks()? {
                match block.needed_text("type")?.as_str() {
                    "text" => texts.0.push(block.needed_raw_text("text")?),
                    "tool_result" => {
                        messages.push(result(&block)?);
                        results += 1;
                    }
                    kind => return Err(said::unreadable(&block, kind, &["text", "tool_result"])),
                }
            }
        }
        if !texts.0.is_empty() || results == 0 {
            messages.push(said::message("user", &texts));
        }
        Ok(())
    }
}

fn call<'a>(block: &Fields<'a>) -> Result<Called<'a>, Refusal> {
    let want = "an object";
    let input = block.need("input", want)?;
    Fields::of(block.at("input"), input, want)?;
    Ok(Called {
        id: block.needed_raw_text("id")?,
        name: block.needed_raw_text("name")?,
        arguments: Arguments::Json(input.get()),
    })
}

fn result(block: &Fields<'_>) -> Result<Message, Refusal> {
    let id = block.needed_raw_text("tool_use_id")?;
    let texts = match block.raw("content") {
        Some(raw) => Texts::read(&block.at("content"), raw, &["text"])?,
        None => Texts::default(),
    };
    Ok(said::result(id, &texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: &[&str]) {
        let messages = read_all(&Fields::of_body(body.as_bytes()).unwrap()).unwrap();
        let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
        assert_eq!(messages, expect, "{body}");
    }

    #[test]
    fn what_tools_gave_back_comes_before_what_the_user_says() {
        check(
            r#"{"system": [{"type":"text","text":"be","cache_control":{"type":"ephemeral"}}], "messages": [
                {"role":"user","content":[{"type":"text","text":"now"},
                    {"type":"tool_result","tool_use_id":"a","content":"1","is_error":true},
                    {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]},
                    {"type":"tool_result","tool_use_id":"c"},
                    {"type":"text","text":"go"}]}]}"#,
            &[
                r#"{"role":"system","content":"be"}"#,
                r#"{"role":"tool","content":"1","tool_call_id":"a"}"#,
                r#"{"role":"tool","content":"2","tool_call_id":"b"}"#,
                r#"{"role":"tool","content":"","tool_call_id":"c"}"#,
                r#"{"role":"user","content":[{"type":"text","text":"now"},{"type":"text","text":"go"}]}"#,
            ],
        );
    }

    #[test]
    fn blocks_of_one_answer_are_one_message() {
        check(
            r#"{"system": "be", "messages": [{"role":"user","content":"hi"},{"role":"assistant","content":[
                {"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},
                {"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"f","input":{"x": "\"y"}}]},
                {"role":"assistant","content":"end"}]}"#,
            &[
                r#"{"role":"system","content":"be"}"#,
                r#"{"role":"user","content":"hi"}"#,
                r#"{"role":"assistant","content":"so","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"\\\"y\"}"}}]}"#,
                r#"{"role":"assistant","content":"end"}"#,
            ],
        );
    }
}
