//! Python's dicts, lists and numbers as a template's values, with the place of what is none of them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use rollyard_core::tokens::template::value::{Dict, List};
use rollyard_core::tokens::template::{CivilTime, Message, Value, json};

use crate::errors::TemplateError;

/// Deeper nesting than this is a mistake, not a message.
const DEPTH_MAX: usize = 128;

/// Any JSON-like object; `place` names it in errors.
pub(crate) fn value_of(place: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(&mut place.to_owned(), object, DEPTH_MAX)
}

fn convert(place: &mut String, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::from(()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::from(text.to_str()?));
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::from(truth.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i64>() {
            Ok(number) => Ok(Value::from(number)),
            // Larger ones only print; their digits are JSON.
            Err(_) => json::parse(object.str()?.to_str()?).map_err(|_| not_json(place, object)),
        };
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::from(number.value()));
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PyTypeError::new_err(format!("{place} is nested more than {DEPTH_MAX} deep")));
    };
    if let Ok(dict) = object.cast::<PyDict>() {
        let pairs = dict.iter().map(|(key, item)| {
            let key = convert(place, &key, depth)?;
            Ok((key.clone(), within(place, &format!(".{key}"), &item, depth)?))
        });
        return Ok(Dict::from_pairs(pairs.collect::<PyResult<Vec<_>>>()?).into_value());
    }
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if is_list {
        let items = object.try_iter()?.enumerate();
        let items = items.map(|(nth, item)| within(place, &format!("[{nth}]"), &item?, depth));
        return Ok(List::new(items.collect::<PyResult<Vec<_>>>()?).into_value());
    }
    Err(not_json(place, object))
}

/// Converts a part, of which the place is known while it is looked at.
fn within(place: &mut String, part: &str, item: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let len = place.len();
    place.push_str(part);
    let value = convert(place, item, depth)?;
    place.truncate(len);
    Ok(value)
}

fn not_json(place: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "{place} is a {kind}; give dicts, lists, strings, numbers, booleans or None"
    ))
}

pub(crate) fn messages_of(messages: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    let list = messages.try_iter().map_err(|_| not_json("messages", messages))?;
    list.enumerate()
        .map(|(nth, message)| {
            let value = value_of(&format!("messages[{nth}]"), &message?)?;
            Message::from_value(nth, &value).map_err(TemplateError::of)
        })
        .collect()
}

/// `None` where there are no tools.
pub(crate) fn optional(place: &str, object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Value>> {
    object.filter(|object| !object.is_none()).map(|object| value_of(place, object)).transpose()
}

/// Variables of the template by name.
pub(crate) fn variables(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Value)>> {
    let Some(kwargs) = kwargs else { return Ok(Vec::new()) };
    kwargs
        .iter()
        .map(|(name, object)| {
            let name: String = name.extract()?;
            let value = value_of(&name, &object)?;
            Ok((name, value))
        })
        .collect()
}

/// The local time, as a template's `strftime_now` tells it.
pub(crate) fn now(py: Python<'_>) -> PyResult<CivilTime> {
    let now = py.import("datetime")?.getattr("datetime")?.call_method0("now")?;
    let field = |name: &str| now.getattr(name);
    Ok(CivilTime {
        year: field("year")?.extract()?,
        month: field("month")?.extract()?,
        day: field("day")?.extract()?,
        hour: field("hour")?.extract()?,
        minute: field("minute")?.extract()?,
        second: field("second")?.extract()?,
        microsecond: field("microsecond")?.extract()?,
    })
}
