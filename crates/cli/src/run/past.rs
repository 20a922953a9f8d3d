//! What a folder was made with: another run does not go into it.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Writes down what the run is, or checks that it is the one that was written down. Where nothing was made yet,
/// the last word counts: whoever mistyped a flag may correct it.
pub(super) fn claim(path: &Path, identity: &Value, made: bool) -> Result<()> {
    let cannot = |doing| move || format!("cannot {doing}: {}", path.display());
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.with_context(cannot("read"))?).filter(|_| made),
    };
    let Some(text) = before else {
        let text = serde_json::to_string_pretty(identity)? + "\n";
        return fs::write(path, text).with_context(cannot("write"));
    };
    let before: Value = serde_json::from_str(&text).with_context(cannot("understand"))?;
    let Some((field, before, now)) = difference(&before, identity) else { return Ok(()) };
    bail!(
        "the folder holds a run with {field} {before}, not {now}; give another folder, or the same settings: {}",
        path.display()
    )
}

/// The first setting that differs, as it was and as it is.
fn difference<'a>(before: &'a Value, now: &'a Value) -> Option<(String, &'a Value, &'a Value)> {
    let (Some(was), Some(is)) = (before.as_object(), now.as_object()) else {
        return (before != now).then(|| (String::new(), before, now));
    };
    is.iter().find_map(|(name, now)| {
        let before = was.get(name).unwrap_or(&Value::Null);
        let (inner, before, now) = difference(before, now)?;
        let field = if inner.is_empty() { name.clone() } else { format!("{name}.{inner}") };
        Some((field, before, now))
    })
}
