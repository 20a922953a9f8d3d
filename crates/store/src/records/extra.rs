//! The scalars of a row that no column has, so that filters and tables can still ask for them.
//!
//! Those of `attributes` and of the row itself go by their name, those of other objects by `<object>.<name>`, parts
//! of a reward by `reward.<part>`. Lists and deeper objects are in the body.

use super::fields::REWARDS;
use super::json::{Node, Said};
use super::shape::CONVERSATION;
use crate::catalog::columns::COLUMNS;

const COUNT_MAX: usize = 64;
/// Longer text is cut: a table shows its beginning, and the body has all of it.
const TEXT_CHARS: usize = 500;
/// Objects that are told apart elsewhere.
const NOT_EXTRA: [&str; 3] = ["grades", "source_file", "timestamp"];

/// As a JSON object, or nothing if there are none.
pub(crate) fn scalars(row: Node<'_>) -> Option<String> {
    let mut json = String::new();
    let mut count = 0;
    let mut add = |prefix: Option<&str>, name: &str, node: Node<'_>| {
        if count < COUNT_MAX && write(&mut json, prefix, name, node) {
            count += 1;
        }
    };
    let attributes = row.get("attributes").filter(|node| node.is_object());
    for (name, node) in attributes.into_iter().flat_map(Node::entries) {
        each(name, node, &mut add);
    }
    for (name, node) in row.entries() {
        let is_told = attributes.is_some_and(|attributes| attributes.get(name).is_some());
        if !is_told && name != "attributes" && !CONVERSATION.contains(&name) {
            each(name, node, &mut add);
        }
    }
    if json.is_empty() {
        return None;
    }
    json.push('}');
    Some(json)
}

fn each<'t>(name: &'t str, node: Node<'t>, add: &mut impl FnMut(Option<&'t str>, &'t str, Node<'t>)) {
    if NOT_EXTRA.contains(&name) {
        return;
    }
    if node.is_object() {
        let prefix = if REWARDS.contains(&name) { "reward" } else { name };
        for (part, value) in node.entries() {
            add(Some(prefix), part, value);
        }
    } else if !COLUMNS.iter().any(|column| column.name == name) {
        add(None, name, node);
    }
}

fn write(json: &mut String, prefix: Option<&str>, name: &str, node: Node<'_>) -> bool {
    let value = match node.said() {
        Said::Str(text) => match text.char_indices().nth(TEXT_CHARS) {
            Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()).into(),
            None => serde_json::Value::from(text),
        },
        Said::Null | Said::List | Said::Object => return false,
        _ => node.to_value(),
    };
    let name = match prefix {
        Some(prefix) => format!("{prefix}.{name}"),
        None => name.to_owned(),
    };
    json.push(if json.is_empty() { '{' } else { ',' });
    json.push_str(&serde_json::Value::from(name).to_string());
    json.push(':');
    json.push_str(&value.to_string());
    true
}
