//! Calls that are JSON: where they end, and what they say.

use rollyard_engine::tool::ToolCall;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::form::Unread;
use super::marks::work;
use super::schema::Tools;
use super::told::Written;

/// Finds the end of a JSON value that comes in parts.
///
/// It counts brackets and leaves the grammar to serde_json: a value that is broken ends where its brackets do.
#[derive(Debug)]
pub(super) struct Scan {
    place: Place,
    depth: usize,
}

#[derive(Debug)]
enum Place {
    Before { named: bool },
    Name,
    Value,
    Text,
    Escape,
}

impl Scan {
    /// `named`: a name may stand before the value.
    pub(super) fn new(named: bool) -> Self {
        Self { place: Place::Before { named }, depth: 0 }
    }

    /// Where the value ends, or the place where it is clear that there is none.
    pub(super) fn end(&mut self, text: &str) -> Option<usize> {
        for (at, c) in text.char_indices() {
            self.place = match (&self.place, c) {
                (Place::Before { .. }, c) if c.is_whitespace() => continue,
                (Place::Before { .. }, '{' | '[') | (Place::Name, '{') => {
                    self.depth = 1;
                    Place::Value
                }
                (Place::Before { named: false }, _) | (Place::Name, '\n') => {
                    work::add(at);
                    return Some(at);
                }
                (Place::Before { named: true } | Place::Name, _) => Place::Name,
                (Place::Value, '"') => Place::Text,
                (Place::Value, '{' | '[') => {
                    self.depth += 1;
                    Place::Value
                }
                (Place::Value, '}' | ']') => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        work::add(at);
                        return Some(at + 1);
                    }
                    Place::Value
                }
                (Place::Value, _) | (Place::Text, '"') => Place::Value,
                (Place::Text, '\\') => Place::Escape,
                (Place::Text | Place::Escape, _) => Place::Text,
            };
        }
        work::add(text.len());
        None
    }
}

/// Whether a text begins as a bare call does: an object, and its first key is one that calls have. Unknown as long as
/// the key is not written.
///
/// So an answer that merely is JSON is a stream like any other.
pub(super) fn begins_call(text: &str) -> Option<bool> {
    const KEYS: [&str; 6] =
        ["\"name\"", "\"parameters\"", "\"arguments\"", "\"type\"", "\"function\"", "\"id\""];
    // What is not decided is read again with the next part.
    const SPACE_MAX: usize = 64;
    let Some(inside) = text.strip_prefix('{') else { return Some(false) };
    let key = inside.trim_start();
    if inside.len() - key.len() > SPACE_MAX {
        return Some(false);
    }
    if KEYS.iter().any(|known| key.starts_with(known)) {
        return Some(true);
    }
    if KEYS.iter().any(|known| known.starts_with(key)) { None } else { Some(false) }
}

pub(super) fn names_arguments(text: &str) -> bool {
    text.contains("\"parameters\"") || text.contains("\"arguments\"")
}

/// `{"name": …, "arguments": …}`, or a list of them.
pub(super) fn objects(body: &str, _tools: &Tools) -> Result<Vec<Written>, Unread> {
    let body = body.trim();
    // Looks at all of it once, and so bounds how deep it nests for whoever reads it next.
    let value: Value = serde_json::from_str(body)
        .map_err(|error| Unread::Malformed(format!("the call is not JSON: {error}")))?;
    if !value.is_array() {
        return Ok(vec![object(body)?]);
    }
    let list: Vec<&RawValue> =
        serde_json::from_str(body).map_err(|error| Unread::Malformed(error.to_string()))?;
    if list.is_empty() {
        return Err(Unread::Malformed("the list of calls is empty".to_owned()));
    }
    list.into_iter().map(|call| object(call.get())).collect()
}

fn object(json: &str) -> Result<Written, Unread> {
    let call = ToolCall::parse(json).map_err(|broken| Unread::Malformed(broken.reason))?;
    Written::new(&call.name, call.arguments.get())
}

/// A call that no mark opened must say that it is one: it has arguments.
pub(super) fn bare(body: &str, tools: &Tools) -> Result<Vec<Written>, Unread> {
    match serde_json::from_str::<Map<String, Value>>(body) {
        Ok(object) => {
            let call = object.get("function").and_then(Value::as_object).unwrap_or(&object);
            let has_name = call.get("name").is_some_and(Value::is_string);
            match has_name && (call.contains_key("parameters") || call.contains_key("arguments")) {
                true => objects(body, tools),
                false => Err(Unread::NoCall),
            }
        }
        Err(_) if names_arguments(body) => objects(body, tools),
        Err(_) => Err(Unread::NoCall),
    }
}

/// What Mistral's models write: a list of objects, or `name{…}` with `[ARGS]` and maybe `[CALL_ID]…` between.
pub(super) fn listed(body: &str, tools: &Tools) -> Result<Vec<Written>, Unread> {
    let body = body.trim();
    if body.starts_with(['[', '{']) {
        return objects(body, tools);
    }
    let Some((name, arguments)) = body.find('{').and_then(|at| body.split_at_checked(at)) else {
        return Err(Unread::Malformed("the call has no arguments".to_owned()));
    };
    let name = name.split('[').next().unwrap_or_default();
    Ok(vec![Written::new(name, arguments)?])
}

impl Written {
    pub(super) fn new(name: &str, arguments: &str) -> Result<Self, Unread> {
        let (name, arguments) = (name.trim(), arguments.trim());
        if name.is_empty() {
            return Err(Unread::Malformed("the call has no name".to_owned()));
        }
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        match serde_json::from_str::<Map<String, Value>>(arguments) {
            Ok(_) => Ok(Self { name: name.to_owned(), arguments: arguments.to_owned() }),
            Err(error) => {
                Err(Unread::Malformed(format!("the arguments of {name} are not a JSON object: {error}")))
            }
        }
    }
}
