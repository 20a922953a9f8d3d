//! Turns the items of a conversation into messages.
//!
//! Thoughts, words and calls of the model are items of their own here, and one message in a chat. So an answer stays
//! open until something comes that cannot belong to it.

use rollyard_engine::generate::Message;

use super::super::fields::{Fields, is_text, wrong};
use super::super::said::{self, Arguments, Called, Texts, Turn};
use crate::refusal::Refusal;

const WANT: &str = "a text or a list of items, at least one";
const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
const KINDS: [&str; 4] = ["message", "function_call", "function_call_output", "reasoning"];
const TEXTS: [&str; 4] = ["input_text", "output_text", "text", "refusal"];

pub(super) fn read(body: &Fields<'_>) -> Result<Vec<Message>, Refusal> {
    let mut talk = Talk::default();
    if let Some(instructions) = body.raw("instructions") {
        if !is_text(instructions) {
            return Err(wrong("instructions", instructions, "a text"));
        }
        talk.messages.push(said::message("system", &Texts(vec![instructions])));
    }
    let input = body.need("input", WANT)?;
    if is_text(input) {
        talk.messages.push(said::message("user", &Texts(vec![input])));
        return Ok(talk.messages);
    }
    let items = body.list("input", WANT)?.unwrap_or_default();
    if items.is_empty() {
        return Err(body.wrong("input", WANT));
    }
    for (nth, raw) in items.into_iter().enumerate() {
        talk.hear(&Fields::of(format!("input[{nth}]"), raw, "an item, which is an object")?)?;
    }
    talk.close();
    Ok(talk.messages)
}

#[derive(Default)]
struct Talk<'a> {
    messages: Vec<Message>,
    /// What the model is saying.
    open: Option<Turn<'a>>,
}

impl<'a> Talk<'a> {
    fn hear(&mut self, item: &Fields<'a>) -> Result<(), Refusal> {
        match item.text("type")?.as_deref() {
            None | Some("message") => self.hear_message(item),
            Some("reasoning") => self.hear_thoughts(item),
            Some("function_call") => {
                let call = Called {
                    id: item.needed_raw_text("call_id")?,
                    name: item.needed_raw_text("name")?,
                    arguments: Arguments::Text(item.needed_raw_text("arguments")?),
                };
                self.open.get_or_insert_default().calls.push(call);
                Ok(())
            }
            Some("function_call_output") => {
                let id = item.needed_raw_text("call_id")?;
                let output = item.need("output", "a text or a list of texts")?;
                let texts = Texts::read(&item.at("output"), output, &TEXTS)?;
                self.close();
                self.messages.push(said::result(id, &texts));
                Ok(())
            }
            Some("item_reference") => Err(item
                .wrong("type", "an item itself: items are not kept, answers are (\"previous_response_id\")")),
            Some(_) => Err(item.wrong("type", &said::one_of(&KINDS))),
        }
    }

    fn hear_message(&mut self, item: &Fields<'a>) -> Result<(), Refusal> {
        let role = said::role(item, &ROLES)?;
        let content = item.need("content", "a text or a list of parts")?;
        let texts = Texts::read(&item.at("content"), content, &TEXTS)?;
        if role == "assistant" {
            let mut turn = self.turn_if(|open| open.texts.0.is_empty() && open.calls.is_empty());
            turn.texts = texts;
            self.open = Some(turn);
            return Ok(());
        }
        self.close();
        // No template knows the newer word for the system.
        let role = if role == "developer" { "system" } else { role };
        self.messages.push(said::message(role, &texts));
        Ok(())
    }

    /// The thoughts themselves, or their summary where they are not told.
    fn hear_thoughts(&mut self, item: &Fields<'a>) -> Result<(), Refusal> {
        let mut texts = Vec::new();
        for (field, kind) in [("content", "reasoning_text"), ("summary", "summary_text")] {
            if let Some(raw) = item.raw(field).filter(|_| texts.is_empty()) {
                texts = Texts::read(&item.at(field), raw, &[kind])?.0;
            }
        }
        if !texts.is_empty() {
            let mut turn = self.turn_if(|open| open.texts.0.is_empty() && open.calls.is_empty());
            turn.thoughts.0.extend(texts);
            self.open = Some(turn);
        }
        Ok(())
    }

    /// The open turn if more of it fits, or else a new one.
    fn turn_if(&mut self, fits: impl FnOnce(&Turn<'a>) -> bool) -> Turn<'a> {
        if !self.open.as_ref().is_some_and(fits) {
            self.close();
        }
        self.open.take().unwrap_or_default()
    }

    fn close(&mut self) {
        self.messages.extend(self.open.take().map(|turn| turn.message()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &[&str]) {
        let body = format!(r#"{{"input": {input}}}"#);
        let messages = read(&Fields::of_body(body.as_bytes()).unwrap()).unwrap();
        let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
        assert_eq!(messages, expect, "{input}");
    }

    #[test]
    fn thoughts_words_and_calls_in_a_row_are_one_message() {
        check(
            r#"[{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
                {"role":"assistant","content":[{"type":"output_text","text":"so"}]},
                {"type":"function_call","call_id":"a","name":"f","arguments":"{ }"},
                {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
                {"type":"function_call_output","call_id":"a","output":"1"}]"#,
            &[
                r#"{"role":"assistant","content":"so","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                r#"{"role":"tool","content":"1","tool_call_id":"a"}"#,
            ],
        );
    }

    #[test]
    fn a_second_answer_is_a_message_of_its_own() {
        check(
            r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},
                {"type":"reasoning","summary":[{"type":"summary_text","text":"x"},{"type":"summary_text","text":"\"y"}]},
                {"type":"reasoning","summary":[],"encrypted_content":"…"},
                {"type":"function_call","call_id":"a","name":"f","arguments":""},
                {"type":"message","role":"assistant","content":"c"}]"#,
            &[
                r#"{"role":"assistant","content":"a"}"#,
                r#"{"role":"assistant","content":"b"}"#,
                r#"{"role":"assistant","content":null,"reasoning_content":"x\n\"y","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
                r#"{"role":"assistant","content":"c"}"#,
            ],
        );
    }
}
