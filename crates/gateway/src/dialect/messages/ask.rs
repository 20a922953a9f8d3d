//! Reads a request for a message.

use serde_json::Value;
use std::num::NonZeroU32;

use super::super::fields::Fields;
use super::super::options;
use super::super::sampling::{self, Names};
use super::super::tools;
use super::blocks;
use crate::ask::{Ask, Chat, Prompt, Sampling};
use crate::refusal::{Kind, Refusal};

/// The answer that the messages of a thread follow.
pub(super) const PREVIOUS: &str = "thread.previous_message_id";

pub(in super::super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let body = Fields::of_body(body)?;
    body.need("max_tokens", "a whole number from 1")?;
    refuse_servers(&body)?;
    refuse_threads(&body)?;
    let chosen = tools::anthropic_choice(&body)?;
    let (tools, tool_choice) = tools::choose(tools::with_input_schema(&body)?, chosen)?;
    let chat = Chat { follows: None, messages: blocks::read_all(&body)?, tools, tool_choice };
    let output = body.object("output_config")?;
    let format = output.as_ref().map_or(Ok(None), |output| output.object("format"))?;
    let names = Names { max_tokens: &["max_tokens"], stop: "stop_sequences" };
    let sampling =
        Sampling { json_schema: sampling::schema(format.as_ref(), None)?, ..sampling::read(&body, names)? };
    let effort = output.map_or(Ok(None), |output| output.text("effort"))?;
    let mut template_kwargs = options::template_kwargs(&body, effort)?;
    if let Some(thinks) = thinks(&body)? {
        template_kwargs.entry("enable_thinking").or_insert(Value::Bool(thinks));
    }
    Ok(Ask {
        model: body.text("model")?,
        prompt: Prompt::Chat(chat),
        sampling,
        choices: NonZeroU32::MIN,
        logprobs: false,
        streams: body.flag("stream")?,
        usage_in_stream: true,
        template_kwargs,
    })
}

/// Nothing if the model may decide.
fn thinks(body: &Fields<'_>) -> Result<Option<bool>, Refusal> {
    let Some(thinking) = body.object("thinking")? else { return Ok(None) };
    match thinking.text("type")?.as_deref() {
        Some("enabled") => Ok(Some(true)),
        Some("disabled") => Ok(Some(false)),
        Some("adaptive" | "between_tools") => Ok(None),
        _ => Err(thinking.wrong("type", "\"enabled\", \"disabled\" or \"adaptive\"")),
    }
}

fn refuse_servers(body: &Fields<'_>) -> Result<(), Refusal> {
    for name in ["mcp_servers", "container"] {
        if body.raw(name).is_some_and(|raw| raw.get() != "[]") {
            return Err(body.wrong(name, "left out: no tools are run here"));
        }
    }
    Ok(())
}

/// A thread may be lost at any time, and whoever is told so sends the whole conversation again. So the first request
/// of one is answered like any other, and what would go on from there is not found.
fn refuse_threads(body: &Fields<'_>) -> Result<(), Refusal> {
    let Some(thread) = body.object("thread")? else { return Ok(()) };
    match thread.text("type")?.as_deref() {
        Some("create") => Ok(()),
        Some("continue") => {
            let id = thread.needed_text("previous_message_id")?;
            let message = format!(
                "field \"{PREVIOUS}\" is {id:?}, but no threads are kept here: send the whole conversation"
            );
            Err(Refusal { kind: Kind::NotFound, ..Refusal::field(PREVIOUS, message) })
        }
        _ => Err(thread.wrong("type", "\"create\" or \"continue\"")),
    }
}
