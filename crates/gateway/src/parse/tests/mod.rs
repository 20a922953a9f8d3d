//! What is heard in the answers of each family.

mod families;
mod grammar;
mod malformed;
mod splits;

use serde_json::value::RawValue;

use super::{Grammar, Heard, Listener};
use crate::tell::Piece;

const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "number"}, "code": {"type": "string"},
        "list": {"type": "array"}, "note": {"type": ["string", "null"]}}}}},
    {"type": "function", "function": {"name": "mcp__git-log", "parameters": {"type": "object"}}}
]"#;

#[derive(Clone, Copy)]
struct Asked<'a> {
    grammar: &'a str,
    tools: bool,
    prompt_end: &'a str,
}

fn asked(grammar: &str) -> Asked<'_> {
    // Templates end so for most families; gpt-oss alone is asked for its header.
    let prompt_end = if grammar == "harmony" { "<|start|>assistant" } else { "assistant\n" };
    Asked { grammar, tools: true, prompt_end }
}

fn listen<'p>(asked: Asked<'_>, parts: impl IntoIterator<Item = &'p str>) -> (Vec<Piece>, Heard) {
    let tools: Option<Box<RawValue>> = asked.tools.then(|| serde_json::from_str(TOOLS).unwrap());
    let grammar = Grammar::named(asked.grammar).unwrap();
    let mut listener = Listener::new(&grammar, tools.as_deref(), asked.prompt_end, 7);
    let mut pieces: Vec<Piece> = parts.into_iter().flat_map(|part| listener.push(part)).collect();
    let (last, heard) = listener.finish();
    pieces.extend(last);
    (pieces, heard)
}

fn calls(heard: &Heard) -> Vec<String> {
    heard.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect()
}
