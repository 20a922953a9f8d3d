//! `--show-config`: the settings as a file that could be read again, with the origin of each in a comment.

use serde_json::Value;
use std::fmt::Write;

use super::resolve::Origin;
use super::{Resolved, Section};

pub(crate) fn show(resolved: &[Resolved]) -> String {
    let mut text = String::from("# What `rollyard serve` would use, and where it comes from.\n");
    for section in Section::ALL {
        let lines: Vec<(String, String)> =
            resolved.iter().filter(|resolved| resolved.setting.section == section).map(line).collect();
        let width = lines.iter().map(|(left, _)| left.len()).max().unwrap_or_default();
        if section == Section::Run {
            text.push_str("\n# A default holds for new runs; the default run keeps what it was told before.");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n[{section}]");
        for (left, right) in lines {
            let _ = writeln!(text, "{left:width$}  # {right}");
        }
    }
    text
}

/// NATS servers may be named together with a password.
fn has_login(name: &str, value: &Value) -> bool {
    name == "log" && value.to_string().contains('@')
}

fn line(resolved: &Resolved) -> (String, String) {
    let name = resolved.setting.name;
    let value = match &resolved.value {
        Value::Null => return (format!("# {name}"), "not set".to_owned()),
        value if resolved.setting.is_secret() || has_login(resolved.setting.name, value) => {
            "\"***\"".to_owned()
        }
        // A flag or a variable is text; where a number is meant, it is shown as one.
        Value::String(text) if !resolved.setting.default.is_string() && is_plain(text) => {
            text.trim().to_owned()
        }
        value => to_toml(value),
    };
    let origin = match resolved.origin {
        Origin::Default => "default".to_owned(),
        _ => resolved.origin_name(),
    };
    (format!("{name} = {value}"), origin)
}

fn is_plain(text: &str) -> bool {
    matches!(serde_json::from_str(text.trim()), Ok(Value::Number(_) | Value::Bool(_)))
}

fn to_toml(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(to_toml).collect::<Vec<_>>().join(", ")),
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    }
}
