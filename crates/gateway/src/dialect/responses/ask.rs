//! Reads a request for a response.

use std::num::NonZeroU32;

use super::super::fields::Fields;
use super::super::options;
use super::super::sampling::{self, Names};
use super::super::tools;
use super::input;
use crate::ask::{Ask, Chat, Prompt, Sampling};
use crate::refusal::Refusal;

/// Before the name of every answer.
pub(super) const PREFIX: &str = "resp_";

pub(in super::super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let body = Fields::of_body(body)?;
    refuse_other_ways(&body)?;
    let chosen = tools::openai_choice(&body, None)?;
    let (tools, tool_choice) = tools::choose(tools::flat(&body)?, chosen)?;
    let follows = body.text("previous_response_id")?;
    let chat = Chat {
        follows: follows.map(|id| id.strip_prefix(PREFIX).map(str::to_owned).unwrap_or(id)),
        messages: input::read(&body)?,
        tools,
        tool_choice,
    };
    let text = body.object("text")?;
    let format = text.map_or(Ok(None), |text| text.object("format"))?;
    let names = Names { max_tokens: &["max_output_tokens"], stop: "stop" };
    let sampling =
        Sampling { json_schema: sampling::schema(format.as_ref(), None)?, ..sampling::read(&body, names)? };
    let effort = body.object("reasoning")?.map_or(Ok(None), |reasoning| reasoning.text("effort"))?;
    options::refuse_tops(&body)?;
    Ok(Ask {
        model: body.text("model")?,
        prompt: Prompt::Chat(chat),
        sampling,
        choices: NonZeroU32::MIN,
        logprobs: includes_logprobs(&body)?,
        streams: body.flag("stream")?,
        usage_in_stream: true,
        template_kwargs: options::template_kwargs(&body, effort)?,
    })
}

fn includes_logprobs(body: &Fields<'_>) -> Result<bool, Refusal> {
    let include: Option<Vec<String>> = body.get("include", "a list of texts")?;
    Ok(include.unwrap_or_default().iter().any(|name| name == "message.output_text.logprobs"))
}

fn refuse_other_ways(body: &Fields<'_>) -> Result<(), Refusal> {
    if body.flag("background")? {
        return Err(body.wrong("background", "false or left out: answers are given at once"));
    }
    for (name, want) in [
        ("conversation", "left out: give \"previous_response_id\" or the items themselves"),
        ("prompt", "left out: no prompts are kept here, give \"input\""),
    ] {
        if body.raw(name).is_some() {
            return Err(body.wrong(name, want));
        }
    }
    Ok(())
}
