//! The tools of a request in chat form, and which of them may be called.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

use super::fields::{Fields, is_text, shown, wrong};
use crate::ask::ToolChoice;
use crate::refusal::Refusal;

const WANT_TOOLS: &str = "a list of tools";
const WANT_TOOL: &str = "an object with a type and a name";

#[derive(Debug)]
pub(super) struct Tool<'a> {
    name: String,
    /// `{"type": "function", "function": {…}}`
    form: Cow<'a, RawValue>,
}

/// A choice, and the field that names the tool.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) choice: ToolChoice,
    pub(super) field: String,
}

#[derive(Serialize)]
struct Form<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

/// As chat completions have them: passed on as they were written.
pub(super) fn nested<'a>(body: &Fields<'a>) -> Result<Vec<Tool<'a>>, Refusal> {
    each(body, |tool, raw| {
        only_functions(&tool)?;
        let want = "an object with a name";
        let function = Fields::of(tool.at("function"), tool.need("function", want)?, want)?;
        let (name, ..) = read(&function, "parameters")?;
        Ok(Tool { name, form: Cow::Borrowed(raw) })
    })
}

/// As responses have them: name, description and parameters beside the type.
pub(super) fn flat<'a>(body: &Fields<'a>) -> Result<Vec<Tool<'a>>, Refusal> {
    each(body, |tool, _| {
        only_functions(&tool)?;
        converted(&tool, "parameters")
    })
}

/// As Anthropic has them: `input_schema`, and a type only for the tools of the server.
pub(super) fn with_input_schema<'a>(body: &Fields<'a>) -> Result<Vec<Tool<'a>>, Refusal> {
    each(body, |tool, _| {
        if tool.text("type")?.is_some_and(|kind| kind != "custom") {
            return Err(tool.wrong("type", "left out or \"custom\": no tools are run here"));
        }
        tool.need("input_schema", "a JSON schema")?;
        converted(&tool, "input_schema")
    })
}

/// The tools that the model is told of.
pub(super) fn choose(
    mut tools: Vec<Tool<'_>>,
    chosen: Chosen,
) -> Result<(Option<Box<RawValue>>, ToolChoice), Refusal> {
    let Chosen { choice, field } = chosen;
    match &choice {
        ToolChoice::Auto => {}
        ToolChoice::None => tools.clear(),
        ToolChoice::Required if tools.is_empty() => {
            let message = format!("field \"{field}\" requires a call, but there are no tools");
            return Err(Refusal::field(field, message));
        }
        ToolChoice::Required => {}
        ToolChoice::Named(name) => {
            let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                let message =
                    format!("field \"{field}\" is {name:?}, but must be one of the tools: {}", shown(&known));
                return Err(Refusal::field(field, message));
            }
            tools.retain(|tool| tool.name == *name);
        }
    }
    let forms: Vec<&RawValue> = tools.iter().map(|tool| &*tool.form).collect();
    let list = (!forms.is_empty()).then(|| to_raw_value(&forms).expect("JSON in a list is JSON"));
    Ok((list, choice))
}

/// OpenAI's choice: a word, or an object that names a function, in the object `within` or in itself.
pub(super) fn openai_choice(body: &Fields<'_>, within: Option<&str>) -> Result<Chosen, Refusal> {
    const FIELD: &str = "tool_choice";
    const WANT: &str = "\"none\", \"auto\", \"required\" or a function";
    let plain = |choice| Ok(Chosen { choice, field: FIELD.to_owned() });
    match body.raw(FIELD) {
        None => plain(ToolChoice::Auto),
        Some(raw) if is_text(raw) => match raw.get() {
            "\"auto\"" => plain(ToolChoice::Auto),
            "\"none\"" => plain(ToolChoice::None),
            "\"required\"" => plain(ToolChoice::Required),
            _ => Err(wrong(FIELD, raw, WANT)),
        },
        Some(raw) => {
            let choice = Fields::of(FIELD, raw, WANT)?;
            if choice.text("type")?.as_deref() != Some("function") {
                return Err(choice.wrong("type", "\"function\""));
            }
            let holder = match within {
                None => choice,
                Some(name) => Fields::of(choice.at(name), choice.need(name, "an object with a name")?, WANT)?,
            };
            Ok(Chosen { choice: ToolChoice::Named(holder.needed_text("name")?), field: holder.at("name") })
        }
    }
}

/// Anthropic's choice: an object with a type.
pub(super) fn anthropic_choice(body: &Fields<'_>) -> Result<Chosen, Refusal> {
    let plain = |choice| Ok(Chosen { choice, field: "tool_choice.type".to_owned() });
    let Some(choice) = body.object("tool_choice")? else { return plain(ToolChoice::Auto) };
    match choice.text("type")?.as_deref() {
        Some("auto") => plain(ToolChoice::Auto),
        Some("any") => plain(ToolChoice::Required),
        Some("none") => plain(ToolChoice::None),
        Some("tool") => {
            Ok(Chosen { choice: ToolChoice::Named(choice.needed_text("name")?), field: choice.at("name") })
        }
        _ => Err(choice.wrong("type", "\"auto\", \"any\", \"tool\" or \"none\"")),
    }
}

fn each<'a>(
    body: &Fields<'a>,
    read: impl Fn(Fields<'a>, &'a RawValue) -> Result<Tool<'a>, Refusal>,
) -> Result<Vec<Tool<'a>>, Refusal> {
    let list = body.list("tools", WANT_TOOLS)?.unwrap_or_default();
    let read = |(nth, raw)| read(Fields::of(format!("tools[{nth}]"), raw, WANT_TOOL)?, raw);
    list.into_iter().enumerate().map(read).collect()
}

fn only_functions(tool: &Fields<'_>) -> Result<(), Refusal> {
    match tool.text("type")?.as_deref() {
        Some("function") => Ok(()),
        _ => Err(tool.wrong("type", "\"function\": no other tools are run here")),
    }
}

fn converted<'a>(tool: &Fields<'a>, schema: &str) -> Result<Tool<'a>, Refusal> {
    let (name, description, parameters) = read(tool, schema)?;
    let form = Form { r#type: "function", function: Function { name: &name, description, parameters } };
    let form = to_raw_value(&form).expect("a tool of JSON is JSON");
    Ok(Tool { name, form: Cow::Owned(form) })
}

type Parts<'a> = (String, Option<&'a RawValue>, Option<&'a RawValue>);

/// Name, description and schema. Templates walk through the properties of a schema, so these are looked at.
fn read<'a>(function: &Fields<'a>, schema: &str) -> Result<Parts<'a>, Refusal> {
    let name = function.needed_text("name")?;
    let description = function.raw("description");
    if description.is_some_and(|raw| !is_text(raw)) {
        return Err(function.wrong("description", "a text"));
    }
    if let Some(raw) = function.raw(schema) {
        let parameters = Fields::of(function.at(schema), raw, "a JSON schema, which is an object")?;
        if parameters.raw("type").is_some_and(|kind| kind.get() != "\"object\"") {
            return Err(parameters.wrong("type", "\"object\""));
        }
        parameters.object("properties")?;
    }
    Ok((name, description, function.raw(schema)))
}
