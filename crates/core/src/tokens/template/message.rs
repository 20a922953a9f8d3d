//! One message of a conversation, converted once and rendered many times.

use minijinja::Value;
use minijinja::value::ValueKind;
use thiserror::Error;

use super::json::{self, JsonError};
use super::python;
use super::value::{Dict, List};

/// A chat message as templates see it. Cloning is a counter, however long the message is.
///
/// As in transformers, reasoning given as `reasoning_content`, `thinking` or `reasoning` is also there under the
/// first two names, because templates disagree on the name.
#[derive(Clone, Debug)]
pub struct Message(Value);

#[derive(Debug, Error)]
pub enum MessageError {
    #[error(
        "message {index} is {found}, not an object; each message needs at least a role: {{\"role\": \"user\", ...}}"
    )]
    NotAnObject { index: usize, found: String },
    #[error("the messages are not a list but {found}; give [{{\"role\": \"user\", \"content\": ...}}, ...]")]
    NotAList { found: String },
    #[error("the messages are not JSON: {0}")]
    Json(#[from] JsonError),
}

/// The names reasoning goes by, the one that templates read first.
pub(super) const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

impl Message {
    /// From a dict value made by [`Dict`], or any map; `index` names it in the error.
    pub fn from_value(index: usize, value: &Value) -> Result<Self, MessageError> {
        let value = plain(value);
        let Some(dict) = value.downcast_object_ref::<Dict>() else {
            return Err(MessageError::NotAnObject { index, found: shown(&value) });
        };
        let given = |name: &&str| dict.get(name).filter(|value| !value.is_none()).cloned();
        let Some(reasoning) = REASONING.iter().find_map(given) else { return Ok(Self(value)) };
        let thinking = [(Value::from("thinking"), reasoning.clone())];
        let copied = Dict::from_pairs(thinking.into_iter().chain(dict.entries().iter().cloned()));
        Ok(Self(copied.with("reasoning_content", reasoning).into_value()))
    }

    pub fn from_json(index: usize, message: &serde_json::Value) -> Result<Self, MessageError> {
        Self::from_value(index, &json::from_json(message))
    }

    /// A whole conversation as JSON text; the order of keys is kept.
    pub fn list_from_str(text: &str) -> Result<Vec<Self>, MessageError> {
        let value = json::parse(text)?;
        let Some(list) = value.downcast_object_ref::<List>() else {
            return Err(MessageError::NotAList { found: shown(&value) });
        };
        list.items().iter().enumerate().map(|(index, message)| Self::from_value(index, message)).collect()
    }

    pub fn role(&self) -> Option<&str> {
        self.dict()?.get("role")?.as_str()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.dict()?.get(key)
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The same message with one field changed.
    pub fn with(&self, key: &str, value: Value) -> Self {
        Self(self.dict().map_or_else(|| self.0.clone(), |dict| dict.with(key, value).into_value()))
    }

    fn dict(&self) -> Option<&Dict> {
        self.0.downcast_object_ref::<Dict>()
    }
}

/// The same data out of our own dicts and lists, whatever it was made of.
pub fn plain(value: &Value) -> Value {
    let is_ours =
        value.downcast_object_ref::<Dict>().is_some() || value.downcast_object_ref::<List>().is_some();
    match value.kind() {
        _ if is_ours => value.clone(),
        ValueKind::Map => {
            Dict::from_pairs(python::pairs(value).into_iter().map(|(key, item)| (key, plain(&item))))
                .into_value()
        }
        ValueKind::Seq if !value.is_tuple() => {
            List::new(value.try_iter().into_iter().flatten().map(|item| plain(&item)).collect()).into_value()
        }
        _ => value.clone(),
    }
}

fn shown(value: &Value) -> String {
    let text = python::repr(value);
    text.chars().take(60).collect()
}
