//! Reads a request for a chat completion.

use super::super::fields::Fields;
use super::super::options;
use super::super::sampling::{self, Names};
use super::super::tools;
use super::line;
use crate::ask::{Ask, Chat, Prompt, Sampling};
use crate::refusal::Refusal;

pub(in super::super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let body = Fields::of_body(body)?;
    refuse_legacy(&body)?;
    let messages = line::read_all(&body)?;
    let chosen = tools::openai_choice(&body, Some("function"))?;
    let (tools, tool_choice) = tools::choose(tools::nested(&body)?, chosen)?;
    let names = Names { max_tokens: &["max_completion_tokens", "max_tokens"], stop: "stop" };
    let format = body.object("response_format")?;
    let sampling = Sampling {
        json_schema: sampling::schema(format.as_ref(), Some("json_schema"))?,
        ..sampling::read(&body, names)?
    };
    options::refuse_tops(&body)?;
    Ok(Ask {
        model: body.text("model")?,
        prompt: Prompt::Chat(Chat { follows: None, messages, tools, tool_choice }),
        sampling,
        choices: options::choices(&body)?,
        logprobs: body.flag("logprobs")?,
        streams: body.flag("stream")?,
        usage_in_stream: options::usage_in_stream(&body)?,
        template_kwargs: options::template_kwargs(&body, body.text("reasoning_effort")?)?,
    })
}

fn refuse_legacy(body: &Fields<'_>) -> Result<(), Refusal> {
    for (name, want) in [
        ("functions", "left out: give \"tools\" instead"),
        ("function_call", "left out: give \"tool_choice\" instead"),
    ] {
        if body.raw(name).is_some_and(|raw| raw.get() != "[]") {
            return Err(body.wrong(name, want));
        }
    }
    Ok(())
}
