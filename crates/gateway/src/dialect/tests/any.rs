//! Claims about anything that may be sent and said.

use super::gist::Gist;
use super::stream::events;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Things to say; calls get their index when they stand in a row.
#[derive(Clone, Debug)]
enum Thing {
    Thought(String),
    Words(String),
    Call { name: String, value: String, cut: prop::sample::Index },
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        ".{0,6}".prop_map(Thing::Thought),
        ".{0,6}".prop_map(Thing::Words),
        ("[a-z]{1,3}", ".{0,6}", any::<prop::sample::Index>()).prop_map(|(name, value, cut)| Thing::Call {
            name,
            value,
            cut
        }),
    ]
}

fn say(things: Vec<Thing>) -> Vec<Piece> {
    let mut index = 0;
    let mut pieces = Vec::new();
    for thing in things {
        match thing {
            Thing::Thought(text) => pieces.push(Piece::Reasoning(text)),
            Thing::Words(text) => pieces.push(Piece::Content(text)),
            Thing::Call { name, value, cut } => {
                let json = serde_json::json!({ "x": value }).to_string();
                let chars: Vec<char> = json.chars().collect();
                let (head, tail) = chars.split_at(cut.index(chars.len()));
                pieces.push(Piece::CallBegun { index, id: format!("call_{index}"), name });
                pieces.push(Piece::CallArguments { index, json: head.iter().collect() });
                pieces.push(Piece::CallArguments { index, json: tail.iter().collect() });
                index += 1;
            }
        }
    }
    pieces
}

proptest! {
    #[test]
    fn a_stream_says_what_the_whole_answer_says(
        things in vec(thing(), 0..8),
        at_once in 1..4_usize,
        stop in select(&[Stop::Stop, Stop::Length, Stop::ToolCalls][..]),
    ) {
        let all: Vec<Spoken> = say(things)
            .chunks(at_once)
            .map(|pieces| Spoken { choice: 0, pieces: pieces.to_vec(), tokens: vec![spelled("é"), spelled("b")] })
            .collect();
        for dialect in Dialect::ALL {
            let more = match dialect {
                Dialect::Chat => r#""logprobs": true"#,
                Dialect::Completions => r#""logprobs": 1"#,
                Dialect::Responses | Dialect::Messages => "",
            };
            let (ask, ended) = (read(dialect, more), ended(stop));
            let whole: Value = serde_json::from_slice(&dialect.write(&whole(&all, &ended), &ask)).unwrap();
            let stream = streamed(dialect, &ask, &all, &ended);
            prop_assert_eq!(Gist::of_stream(dialect, &stream), Gist::of_whole(dialect, &whole));
        }
    }

    #[test]
    fn no_bytes_are_too_much(bytes in vec(any::<u8>(), 0..64)) {
        for dialect in Dialect::ALL {
            let refusal = dialect.read(&bytes).map(drop);
            prop_assert!(refusal.is_ok() || !refusal.unwrap_err().message.is_empty());
        }
    }

    #[test]
    fn no_body_is_too_strange(
        fields in vec((select(FIELDS), select(VALUES)), 0..6),
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        for dialect in Dialect::ALL {
            let more: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            let mut body = body(dialect, &more.join(", ")).into_bytes();
            for (place, byte) in &places {
                let place = place.index(body.len());
                body[place] = *byte;
            }
            match dialect.read(&body) {
                Err(refusal) => prop_assert!(!dialect.refuse(&refusal).is_empty()),
                Ok(ask) => {
                    let stream = streamed(dialect, &ask, &spoken(pieces()), &ended(Stop::Stop));
                    prop_assert!(!events(&stream).is_empty());
                }
            }
        }
    }
}

const FIELDS: &[&str] = &[
    "messages",
    "input",
    "prompt",
    "system",
    "instructions",
    "tools",
    "tool_choice",
    "n",
    "stop",
    "temperature",
    "response_format",
    "text",
    "reasoning",
    "thinking",
    "output_config",
    "stream_options",
    "include",
    "logprobs",
    "chat_template_kwargs",
    "stop_sequences",
    "best_of",
    "logit_bias",
    "previous_response_id",
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1e99",
    "\"\"",
    "\"auto\"",
    "\"\\ud800\"",
    "[]",
    "[[]]",
    "[1]",
    "[\"a\"]",
    "{}",
    "[{}]",
    r#"{"type": "function", "function": {"name": "f"}, "name": "f"}"#,
    r#"[{"type": "function", "function": {"name": "f", "parameters": {}}, "name": "f", "input_schema": {}}]"#,
    r#"[{"role": "developer", "content": [{"type": "text", "text": "\ud800"}], "role": "developer"}]"#,
    r#"[{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}]"#,
    r#"[{"type": "reasoning", "summary": [{"type": "summary_text", "text": "\""}, {"type": "summary_text", "text": "\\"}]}]"#,
    r#"{"format": {"type": "json_schema", "schema": {}}, "effort": "low", "type": "json_object"}"#,
];
