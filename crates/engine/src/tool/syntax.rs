//! Finds tool calls in what a model wrote. Each family of models writes them in its own way.
//!
//! `docs/decisions/008-tool-calls.md` says why the parsers are ours.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{Broken, Calls, ToolCall};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSyntax {
    /// Whichever of the others the answer uses.
    #[default]
    Auto,
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen and many others.
    Hermes,
    /// `{"name": …, "parameters": …}` as the whole answer, maybe after `<|python_tag|>`, several with `;` between.
    Llama,
    /// `[TOOL_CALLS] [{"name": …, "arguments": …}]`, or `[TOOL_CALLS]name{…}` of later models.
    Mistral,
}

const HERMES: (&str, &str) = ("<tool_call>", "</tool_call>");
const LLAMA: &str = "<|python_tag|>";
const MISTRAL: &str = "[TOOL_CALLS]";
const THOUGHT_END: &str = "</think>";

impl ToolSyntax {
    /// What the answer says and calls. Calls in thoughts are thoughts.
    pub fn find(self, answer: &str) -> Calls {
        let (thoughts, said) = match answer.rfind(THOUGHT_END) {
            Some(at) => answer.split_at_checked(at + THOUGHT_END.len()).unwrap_or((answer, "")),
            None => ("", answer),
        };
        let mut calls = match self {
            Self::Auto => auto(said),
            Self::Hermes => hermes(said),
            Self::Llama => llama(said),
            Self::Mistral => mistral(said),
        };
        calls.content.insert_str(0, thoughts);
        calls
    }
}

fn auto(said: &str) -> Calls {
    if said.contains(HERMES.0) {
        hermes(said)
    } else if said.contains(MISTRAL) {
        mistral(said)
    } else {
        let calls = llama(said);
        // An answer that merely is JSON calls nothing: only what names a tool does.
        let is_call = said.contains(LLAMA) || calls.calls.iter().any(Result::is_ok);
        if is_call { calls } else { none(said) }
    }
}

fn none(said: &str) -> Calls {
    Calls { content: said.to_owned(), calls: Vec::new() }
}

fn hermes(said: &str) -> Calls {
    let mut found = Calls::default();
    let mut rest = said;
    while let Some((before, after)) = rest.split_once(HERMES.0) {
        found.content.push_str(before);
        let Some((inside, behind)) = after.split_once(HERMES.1) else {
            let reason = format!("the call does not end; close it with {}", HERMES.1);
            found.calls.push(Err(Broken { reason }));
            rest = "";
            break;
        };
        found.calls.push(ToolCall::parse(inside.trim()));
        rest = behind;
    }
    found.content.push_str(rest);
    trim_behind(found)
}

fn llama(said: &str) -> Calls {
    let (content, written) = match said.split_once(LLAMA) {
        Some((content, written)) => (content, written),
        None if said.trim_start().starts_with('{') => ("", said),
        None => return none(said),
    };
    let mut calls = Vec::new();
    let mut rest = written.trim();
    while !rest.is_empty() {
        let Some((object, behind)) = first_json(rest) else {
            calls.push(ToolCall::parse(rest));
            break;
        };
        calls.push(ToolCall::parse(object));
        rest = behind.trim_start().trim_start_matches(';').trim_start();
    }
    trim_behind(Calls { content: content.to_owned(), calls })
}

fn mistral(said: &str) -> Calls {
    let Some((content, written)) = said.split_once(MISTRAL) else { return none(said) };
    let mut calls = Vec::new();
    for written in written.split(MISTRAL).map(str::trim) {
        if written.starts_with('[') {
            match first_json(written).map(|(list, _)| serde_json::from_str::<Vec<&RawValue>>(list)) {
                Some(Ok(list)) => calls.extend(list.into_iter().map(|call| ToolCall::parse(call.get()))),
                _ => calls.push(Err(Broken { reason: "the calls are not a JSON list".to_owned() })),
            }
            continue;
        }
        calls.push(by_name(written));
    }
    trim_behind(Calls { content: content.to_owned(), calls })
}

/// `name{…}`, with marks between the two in some models.
fn by_name(written: &str) -> Result<ToolCall, Broken> {
    let broken = |reason: &str| Broken { reason: reason.to_owned() };
    let at = written.find('{').ok_or_else(|| broken("the call has no arguments"))?;
    let (name, arguments) = written.split_at_checked(at).unwrap_or((written, ""));
    let name = name.split('[').next().unwrap_or_default().trim();
    let (arguments, _) = first_json(arguments).ok_or_else(|| broken("the arguments are not JSON"))?;
    let arguments = serde_json::from_str(arguments).map_err(|_| broken("the arguments are not JSON"))?;
    match name.is_empty() {
        true => Err(broken("the call has no name")),
        false => Ok(ToolCall { id: None, name: name.to_owned(), arguments }),
    }
}

/// The JSON value that a text begins with, and what follows it.
fn first_json(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    values.next()?.ok()?;
    text.split_at_checked(values.byte_offset())
}

/// Without the space that stood between the answer and its calls.
fn trim_behind(mut found: Calls) -> Calls {
    if !found.calls.is_empty() {
        found.content.truncate(found.content.trim_end().len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: &Calls) -> Vec<String> {
        let show = |call: &Result<ToolCall, Broken>| match call {
            Ok(call) => format!("{} {}", call.name, call.arguments.get()),
            Err(broken) => format!("broken: {}", broken.reason),
        };
        found.calls.iter().map(show).collect()
    }

    #[test]
    fn calls_are_found_in_every_syntax() {
        for (answer, content, expect) in [
            ("Just text.", "Just text.", vec![]),
            (
                "Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
                "Let me see.",
                vec![r#"add {"a": 1}"#],
            ),
            (
                "<tool_call>{\"name\":\"a\"}</tool_call>\n<tool_call>{\"name\":\"b\",\"arguments\":\"{\\\"x\\\":2}\"}</tool_call>",
                "",
                vec!["a {}", r#"b {"x":2}"#],
            ),
            (r#"{"name": "add", "parameters": {"a": 1}}"#, "", vec![r#"add {"a": 1}"#]),
            (
                r#"<|python_tag|>{"name":"a","parameters":{}}; {"name":"b","parameters":{}}"#,
                "",
                vec!["a {}", "b {}"],
            ),
            (
                r#"Hm. [TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}, {"name": "b"}]"#,
                "Hm.",
                vec![r#"add {"a": 1}"#, "b {}"],
            ),
            (r#"[TOOL_CALLS]add{"a": 1}[TOOL_CALLS]b[ARGS]{}"#, "", vec![r#"add {"a": 1}"#, "b {}"]),
            (r#"{"answer": 42}"#, r#"{"answer": 42}"#, vec![]),
            (
                "<think>maybe <tool_call>{\"name\":\"a\"}</tool_call></think>\n\nNo.",
                "<think>maybe <tool_call>{\"name\":\"a\"}</tool_call></think>\n\nNo.",
                vec![],
            ),
        ] {
            let found = ToolSyntax::Auto.find(answer);
            assert_eq!(shown(&found), expect, "{answer}");
            assert_eq!(found.content, content, "{answer}");
        }
    }

    #[test]
    fn a_malformed_call_says_what_is_wrong() {
        for (answer, expect) in [
            ("<tool_call>{\"name\": \"add\"", "the call does not end; close it with </tool_call>"),
            ("<tool_call>add(1)</tool_call>", "the call is not a JSON object with a name and arguments"),
            ("<tool_call>{\"arguments\": {}}</tool_call>", "the call has no \"name\""),
            ("<tool_call>{\"name\":\"a\",\"arguments\":\"{\"}</tool_call>", "the arguments are not JSON"),
            ("<|python_tag|>print(1)", "the call is not a JSON object"),
            ("[TOOL_CALLS] [{]", "the calls are not a JSON list"),
            ("[TOOL_CALLS]add", "the call has no arguments"),
        ] {
            let shown = shown(&ToolSyntax::Auto.find(answer));
            assert!(shown.len() == 1 && shown[0].contains(expect), "{answer}: {shown:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_answer_panics(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "<tool_call>", "</tool_call>", "<|python_tag|>", "[TOOL_CALLS]", "{", "}", "[", "]", "\"name\"", ":",
            "\"a\"", ",", ";", " ", "</think>", "ü",
        ]), 0..20)) {
            let answer = pieces.concat();
            for syntax in [ToolSyntax::Auto, ToolSyntax::Hermes, ToolSyntax::Llama, ToolSyntax::Mistral] {
                syntax.find(&answer);
            }
        }
    }
}
