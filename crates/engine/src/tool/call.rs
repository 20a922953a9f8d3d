//! A call as the model wrote it.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Given by the engine, or made up.
    pub id: Option<String>,
    pub name: String,
    pub arguments: Box<RawValue>,
}

/// A call that cannot be understood, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub reason: String,
}

/// What an answer says, and what it calls, in order.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The answer without its calls.
    pub content: String,
    pub calls: Vec<Result<ToolCall, Broken>>,
}

/// Every way to write a call as an object; the arguments are an object, or a text with one in it.
#[derive(Deserialize)]
struct Wire<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
}

impl ToolCall {
    /// Reads one object: `{"name", "arguments"}`, with `parameters` for the arguments, or as OpenAI nests it
    /// under `function`.
    pub fn parse(json: &str) -> Result<Self, Broken> {
        let broken = |reason: String| Broken { reason };
        let wire: Wire<'_> = serde_json::from_str(json).map_err(|error| {
            broken(format!("the call is not a JSON object with a name and arguments: {error}"))
        })?;
        if let Some(function) = wire.function {
            let inner: Wire<'_> = serde_json::from_str(function.get())
                .map_err(|error| broken(format!("\"function\" is not an object: {error}")))?;
            // One level deep: an answer that nests them without end is no call.
            return match inner.function {
                Some(_) => Err(broken("\"function\" has a \"function\" of its own".to_owned())),
                None => Ok(Self { id: wire.id, ..Self::parse(function.get())? }),
            };
        }
        let name = wire.name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| broken("the call has no \"name\"".to_owned()))?;
        let arguments = match wire.arguments.or(wire.parameters) {
            Some(raw) => arguments(raw).map_err(broken)?,
            None => to_raw_value(&serde_json::json!({})).expect("an empty object is JSON"),
        };
        Ok(Self { id: wire.id, name, arguments })
    }
}

fn arguments(raw: &RawValue) -> Result<Box<RawValue>, String> {
    let Ok(text) = serde_json::from_str::<Cow<'_, str>>(raw.get()) else { return Ok(raw.to_owned()) };
    let text = if text.trim().is_empty() { "{}" } else { text.trim() };
    serde_json::from_str(text).map_err(|error| format!("the arguments are not JSON: {error}"))
}
