//! Where a prompt's data has the right answer.

use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::RewardError;
use crate::episode::Data;

/// The names that data sets have for it; the first that is there counts.
pub const TRUTH_FIELDS: [&str; 4] = ["answer", "label", "ground_truth", "solution"];

/// As text; a number or a truth value as JSON writes it.
pub(super) fn truth(by: &str, data: &Data) -> Result<String, RewardError> {
    let bad = |message: String| RewardError::BadData { by: by.to_owned(), message };
    let found = TRUTH_FIELDS.iter().find_map(|field| Some((field, data.get(field)?)));
    let Some((field, value)) = found else {
        let known = TRUTH_FIELDS.join("\", \"");
        let fields = data.fields().keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(bad(format!("the data has none of the fields \"{known}\"; it has {fields}")));
    };
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => {
            // As it is written: a long number has more digits than a float keeps.
            let raw: Option<BTreeMap<Cow<'_, str>, &RawValue>> = serde_json::from_str(data.json().get()).ok();
            let raw = raw.and_then(|fields| fields.get(*field).map(|raw| raw.get().to_owned()));
            Ok(raw.unwrap_or_else(|| value.to_string()))
        }
        other => Err(bad(format!("field \"{field}\" is {other}, but must be a text or a number"))),
    }
}
