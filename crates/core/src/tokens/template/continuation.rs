//! `continue_final_message`: the text ends where the last message ends, so that the model goes on with it.
//!
//! As in transformers: a tag is put behind the message, the whole conversation is rendered, and everything from
//! the tag on is cut off.

use minijinja::Value;

use super::message::{Message, REASONING};
use super::value::{Dict, List};
use super::{ContinueError, python};

const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A final message with the tag behind it, and the text to look for.
pub(super) struct Tagged {
    pub(super) message: Message,
    text: String,
}

pub(super) fn tag(last: &Message, field: &str, template: &str) -> Result<Tagged, ContinueError> {
    let missing = || ContinueError::NoField { field: field.to_owned() };
    let found = last.get(field).filter(|value| !value.is_none()).ok_or_else(missing)?;
    let fields: Vec<&str> = if REASONING.contains(&field) {
        REASONING.into_iter().filter(|name| last.get(name) == Some(found)).collect()
    } else {
        vec![field]
    };
    if !fields.iter().any(|field| template.contains(field)) {
        return Err(ContinueError::FieldUnknown { field: field.to_owned() });
    }
    if let Some(parts) = found.downcast_object_ref::<List>() {
        let (parts, text) = tag_part(parts).ok_or(ContinueError::NoText)?;
        return Ok(Tagged { message: last.with(field, parts), text });
    }
    let text = found.as_str().ok_or(ContinueError::NoText)?.to_owned();
    let tagged = Value::from([&text, TAG].concat());
    let message = fields.iter().fold(last.clone(), |message, field| message.with(field, tagged.clone()));
    Ok(Tagged { message, text })
}

/// The tag goes behind the last part that has a text.
fn tag_part(parts: &List) -> Option<(Value, String)> {
    let part_text =
        |part: &Value| Some(part.downcast_object_ref::<Dict>()?.get("text")?.as_str()?.to_owned());
    let (at, text) =
        parts.items().iter().enumerate().rev().find_map(|(at, part)| Some((at, part_text(part)?)))?;
    let mut items = parts.items().to_vec();
    let part = items.get_mut(at)?;
    *part = part.downcast_object_ref::<Dict>()?.with("text", Value::from([&text, TAG].concat())).into_value();
    Some((List::new(items).into_value(), text))
}

impl Tagged {
    /// How many bytes of the rendered text come before what follows the final message.
    pub(super) fn cut(&self, rendered: &str) -> Result<usize, ContinueError> {
        let wanted = self.text.trim_matches(python::is_space);
        let at = rendered.rfind(TAG.trim_end()).filter(|_| rendered.contains(wanted));
        let at =
            at.ok_or_else(|| ContinueError::NotRendered { message: wanted.chars().take(200).collect() })?;
        let (before, after) = rendered.split_at_checked(at).unwrap_or((rendered, ""));
        // A template that trims has taken the tag's space, and would have taken the message's too.
        Ok(if after.starts_with(TAG) { at } else { before.trim_end_matches(python::is_space).len() })
    }
}
