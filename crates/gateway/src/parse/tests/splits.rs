//! However an answer is cut into parts, the same is told, and in linear time.

use crate::parse::Grammar;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value};

use super::{Asked, listen};
use crate::parse::Heard;
use crate::parse::marks::work;
use crate::tell::{Call, Piece};

/// What was told in pieces, as one.
fn joined(pieces: &[Piece]) -> Heard {
    let mut heard = Heard::default();
    for piece in pieces {
        match piece {
            Piece::Reasoning(text) => heard.reasoning.get_or_insert_default().push_str(text),
            Piece::Content(text) => heard.content.push_str(text),
            Piece::CallBegun { index, id, name } => {
                assert_eq!(*index as usize, heard.calls.len(), "calls come in order");
                heard.calls.push(Call { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            Piece::CallArguments { index, json } => heard.calls[*index as usize].arguments.push_str(json),
        }
    }
    heard
}

const FRAGMENTS: [&str; 64] = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[THINK]",
    "[/THINK]",
    "<function=add>",
    "<function=",
    ">",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "<arg_key>a</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "add",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "function",
    "\n```json\n",
    "\n```",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "functions.add:0",
    "<|start|>",
    "assistant",
    "<|channel|>",
    "analysis",
    "commentary",
    "final",
    " to=functions.add",
    "<|constrain|>json",
    "<|message|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "{\"name\": \"add\", \"arguments\": {}}",
    "{\"name\": \"add\", \"parameters\": {\"a\": \"}\\\"\"}}",
    "{\"na",
    "{\"x\": 1}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ";",
    "\n",
    "\n\n",
    " ",
    "a",
    "ü",
    "｜",
    "<",
    "<|",
    "long words that fill a header up, and then some more, ",
];

/// Whole calls, so that not all that is tried is malformed.
const CALLS: [&str; 7] = [
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
    "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    "[TOOL_CALLS]add[ARGS]{\"a\": \"]}\"}",
    "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>",
    "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>",
    "<|start|>assistant<|channel|>commentary to=functions.add<|message|>{\"a\": 1}<|call|>",
];

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![6 => select(&FRAGMENTS[..]), 1 => select(&CALLS[..])];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn cut<'t>(text: &'t str, cuts: &[Index]) -> Vec<&'t str> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn prompt_end() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "<think>\n",
        "[THINK]",
        "<|start|>assistant",
        "<|start|>assistant<|channel|>analysis<|message|>",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_cut_tells_the_same(
        text in text(),
        cuts in proptest::collection::vec(any::<Index>(), 0..12),
        prompt_end in prompt_end(),
        tools in any::<bool>(),
    ) {
        for grammar in Grammar::names() {
            let asked = Asked { grammar, tools, prompt_end };
            let (pieces, whole) = listen(asked, [text.as_str()]);
            let (cut_pieces, by_cuts) = listen(asked, cut(&text, &cuts));
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let (char_pieces, by_chars) = listen(asked, chars.iter().map(String::as_str));
            prop_assert_eq!(&by_cuts, &whole, "{}", grammar);
            prop_assert_eq!(&by_chars, &whole, "{}", grammar);
            for pieces in [pieces, cut_pieces, char_pieces] {
                let malformed = whole.malformed.clone();
                prop_assert_eq!(&Heard { malformed, ..joined(&pieces) }, &whole, "{}", grammar);
            }
            for call in &whole.calls {
                prop_assert!(serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok(), "{:?}", call);
            }
            if grammar == "none" {
                prop_assert_eq!(&whole.content, &text);
            }
        }
    }
}

#[test]
fn words_and_thoughts_stream() {
    for (grammar, text, expect) in [
        ("qwen", "<think>I th", Piece::Reasoning("I th".to_owned())),
        ("qwen", "Hello, <wor", Piece::Content("Hello, <wor".to_owned())),
        ("qwen", "Hello <tool", Piece::Content("Hello".to_owned())),
        ("llama3", "{\"answer\": 4", Piece::Content("{\"answer\": 4".to_owned())),
        ("harmony", "<|channel|>final<|message|>Hel", Piece::Content("Hel".to_owned())),
    ] {
        let asked = super::asked(grammar);
        let tools = serde_json::from_str(super::TOOLS).unwrap();
        let grammar = crate::parse::Grammar::named(grammar).unwrap();
        let mut listener = crate::parse::Listener::new(&grammar, Some(tools), asked.prompt_end, 0);
        assert_eq!(listener.push(text), [expect]);
    }
}

/// Bytes looked at for a text that comes one character at a time, and at once.
fn work_for(grammar: &str, text: &str) -> [usize; 2] {
    let chars: Vec<String> = text.chars().map(String::from).collect();
    work::take();
    listen(super::asked(grammar), chars.iter().map(String::as_str));
    let by_chars = work::take();
    listen(super::asked(grammar), [text]);
    [by_chars, work::take()]
}

#[test]
fn work_grows_with_the_text_and_not_with_its_square() {
    const BYTES: usize = 100_000;
    let long = "x".repeat(BYTES);
    for unit in ["a < b <th", " ", "\n", "{", "[", "<tool_call>{}</tool_call>", "<think>a</think>", "x"] {
        for lead in
            ["", "<think>", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>{", "{\"name\": \"", "<|channel|>"]
        {
            for grammar in Grammar::names() {
                let text = format!("{lead}{}", unit.repeat(BYTES / 50 / unit.len()));
                // A mark that is almost there is looked at again with each character that comes.
                let most = 40 * text.len() + 100;
                for work in work_for(grammar, &text) {
                    assert!(work <= most, "{grammar} {lead}{unit}…: {work} bytes for {}", text.len());
                }
            }
        }
    }
    for grammar in Grammar::names() {
        let call =
            format!("<tool_call>{{\"name\": \"add\", \"arguments\": {{\"code\": \"{long}\"}}}}</tool_call>");
        for work in work_for(grammar, &call) {
            assert!(work <= 40 * call.len(), "{grammar}: {work} bytes for {}", call.len());
        }
    }
}

#[test]
fn no_mark_of_a_family_begins_another() {
    // The first mark that fits is taken, so none may be hidden by a shorter one.
    for family in [
        &["<think>", "<tool_call>"][..],
        &["<think>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>"],
        &["<think>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"],
        &["<|start|>", "<|channel|>", "<|end|>", "<|call|>", "<|return|>"],
    ] {
        for mark in family {
            assert!(!family.iter().any(|other| other != mark && other.starts_with(mark)), "{mark}");
        }
    }
}
