//! A request to an engine, as Python has it: ours, or any object with the same attributes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyString};
use rollyard_engine::generate::{GenerationConfig, Message, ModelRequest, Prompt};
use serde_json::value::RawValue;

use crate::errors::RequestError;
use crate::numbers::ints;

/// So many and more mean all tokens: other programs have no `None` for it.
const TOP_K_ALL: i64 = 100_000_000;

pub(crate) fn request_of(given: &Bound<'_, PyAny>, session: Option<String>) -> PyResult<ModelRequest> {
    let field = |name: &str| Ok::<_, PyErr>(given.getattr_opt(name)?.filter(|value| !value.is_none()));
    let tokens = match field("input_ids")? {
        // Most requests are chats or tokens; to make an empty list of both is the caller's habit.
        Some(ids) if !ids.is_empty().unwrap_or(false) => Some(tokens_of(&ids)?),
        _ => None,
    };
    let messages = field("messages")?.filter(|messages| !messages.is_empty().unwrap_or(false));
    let prompt = match (tokens, messages) {
        (Some(tokens), None) => Prompt::Tokens(tokens),
        (None, Some(messages)) => Prompt::Chat {
            messages: messages_of(&messages)?,
            tools: field("tools")?.map(|tools| raw_json(&tools)).transpose()?,
        },
        (Some(_), Some(_)) => {
            return Err(RequestError::new_err("input_ids and messages are both given; give one of them"));
        }
        (None, None) => return Err(RequestError::new_err("neither input_ids nor messages are given")),
    };
    let gconfig = field("gconfig")?.map(|given| generation_of(&given)).transpose()?.unwrap_or_default();
    Ok(ModelRequest {
        rid: field("rid")?.map(|rid| rid.extract()).transpose()?.unwrap_or_default(),
        prompt,
        gconfig,
        session: field("session")?.map(|session| session.extract()).transpose()?.or(session),
        metadata: serde_json::Map::new(),
    })
}

fn tokens_of(ids: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    // Lists of ints are what workflows mostly have, and numpy takes ten times as long with them.
    let listed = ids.cast::<PyList>().ok().and_then(|list| list.extract().ok());
    listed.map_or_else(|| ints("input_ids", ids), Ok)
}

fn generation_of(given: &Bound<'_, PyAny>) -> PyResult<GenerationConfig> {
    let field = |name: &str| Ok::<_, PyErr>(given.getattr_opt(name)?.filter(|value| !value.is_none()));
    let defaults = GenerationConfig::default();
    if let Some(samples) = field("n_samples")? {
        let samples: i64 = samples.extract()?;
        if samples != 1 {
            let message =
                format!("n_samples is {samples}, but a request is for one answer; send it so often");
            return Err(RequestError::new_err(message));
        }
    }
    macro_rules! read {
        ($name:ident) => {
            match field(stringify!($name))? {
                Some(value) => value.extract().map_err(|error| wrong(stringify!($name), &value, &error))?,
                None => defaults.$name,
            }
        };
    }
    Ok(GenerationConfig {
        max_new_tokens: read!(max_new_tokens),
        min_new_tokens: read!(min_new_tokens),
        greedy: read!(greedy),
        temperature: read!(temperature),
        top_p: read!(top_p),
        top_k: field("top_k")?.map(|value| top_k_of(&value)).transpose()?.flatten(),
        frequency_penalty: read!(frequency_penalty),
        presence_penalty: read!(presence_penalty),
        stop: field("stop")?.map(|value| stop_of(&value)).transpose()?.unwrap_or_default(),
        stop_token_ids: match field("stop_token_ids")? {
            Some(ids) => ints("stop_token_ids", &ids)?,
            None => Vec::new(),
        },
        json_schema: match field("json_schema")? {
            Some(schema) => Some(schema.extract().map_err(|error| wrong("json_schema", &schema, &error))?),
            None => None,
        },
        seed: match field("seed")? {
            Some(seed) => Some(seed.extract().map_err(|error| wrong("seed", &seed, &error))?),
            None => None,
        },
    })
}

/// Nothing where all tokens are meant: -1, or more than any vocabulary has.
fn top_k_of(value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    // `int(1e8)` is sometimes written without the `int`.
    let k = match value.cast::<PyFloat>() {
        Ok(float) if float.value().fract() == 0.0 => float.value() as i64,
        _ => value.extract::<i64>().map_err(|error| wrong("top_k", value, &error))?,
    };
    Ok(u32::try_from(k).ok().filter(|k| *k > 0 && i64::from(*k) < TOP_K_ALL))
}

fn stop_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match value.cast::<PyString>() {
        Ok(one) => Ok(vec![one.to_str()?.to_owned()]),
        Err(_) => value.extract().map_err(|error| wrong("stop", value, &error)),
    }
}

fn messages_of(messages: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    messages.try_iter()?.map(|message| raw_json(&message?)).collect()
}

/// As Python writes it: what a user gave is sent as it is.
pub(crate) fn raw_json(object: &Bound<'_, PyAny>) -> PyResult<Box<RawValue>> {
    let text = object.py().import("json")?.call_method1("dumps", (object,))?;
    let text: String = text.extract()?;
    RawValue::from_string(text).map_err(|error| RequestError::new_err(format!("not JSON: {error}")))
}

fn wrong(field: &str, value: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
    let shown = value.repr().map(|text| text.to_string()).unwrap_or_default();
    let shown: String = shown.chars().take(60).collect();
    PyTypeError::new_err(format!("gconfig.{field} is {shown}: {error}"))
}
