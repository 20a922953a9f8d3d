//! What is told in a stream, event by event.

use super::*;
use crate::refusal::{Kind, Refusal};
use serde_json::{Value, json};

/// The events by name, each with its data; chat completions have no names.
pub(super) fn events(stream: &str) -> Vec<(Option<String>, Value)> {
    let event = |event: &str| {
        let mut name = None;
        let mut data = Value::Null;
        for line in event.lines() {
            match line.split_once(": ").unwrap() {
                ("event", text) => name = Some(text.to_owned()),
                ("data", "[DONE]") => data = json!("[DONE]"),
                ("data", text) => data = serde_json::from_str(text).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        (name, data)
    };
    stream.strip_suffix("\n\n").unwrap().split("\n\n").map(event).collect()
}

fn names(stream: &str) -> Vec<String> {
    let name = |(name, data): (Option<String>, Value)| {
        assert_eq!(data["type"], json!(name), "{data}");
        name.unwrap()
    };
    events(stream).into_iter().map(name).collect()
}

#[test]
fn a_chat_is_told_in_chunks() {
    let ask = read(Dialect::Chat, r#""stream_options": {"include_usage": true}"#);
    let stream = streamed(Dialect::Chat, &ask, &spoken(pieces()), &ended(Stop::ToolCalls));
    let mut chunks = events(&stream);
    assert_eq!(chunks.pop(), Some((None, json!("[DONE]"))));
    let usage = chunks.pop().unwrap().1;
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(15)));
    let last = chunks.pop().unwrap().1;
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");
    let deltas: Vec<Value> = chunks.iter().map(|(_, chunk)| chunk["choices"][0]["delta"].clone()).collect();
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}});
    let expect = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "hm"}),
        json!({"content": "so"}),
        json!({"tool_calls": [call]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\":"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
    ];
    assert_eq!(deltas, expect);
    let (_, first) = chunks.first().unwrap();
    assert_eq!((&first["id"], &first["object"]), (&json!("chatcmpl-1"), &json!("chat.completion.chunk")));
    assert!(first.as_object().unwrap().contains_key("usage"));
}

#[test]
fn usage_is_told_only_to_whoever_asks() {
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let stream = streamed(dialect, &ask(dialect), &spoken(pieces()), &ended(Stop::Stop));
        assert!(!stream.contains("usage"), "{stream}");
    }
}

#[test]
fn every_choice_begins_and_ends() {
    let mut voice = Dialect::Chat.voice(begun(), &read(Dialect::Chat, r#""n": 2"#));
    let mut out = Vec::new();
    voice.begin(&mut out);
    for choice in [1, 0] {
        voice.end(&Ended { choice, ..ended(Stop::Stop) }, &mut out);
    }
    let chunks = events(std::str::from_utf8(&out).unwrap());
    let indices: Vec<&Value> = chunks.iter().map(|(_, chunk)| &chunk["choices"][0]["index"]).collect();
    assert_eq!(indices, [0, 1, 1, 0]);
}

#[test]
fn tokens_are_told_even_before_they_say_anything() {
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let silent = Spoken { choice: 0, pieces: Vec::new(), tokens: vec![spelled("é")] };
        let words = Spoken {
            pieces: vec![Piece::Content("éb".into())],
            tokens: vec![spelled("b")],
            ..silent.clone()
        };
        let ask =
            read(dialect, if dialect == Dialect::Chat { r#""logprobs": true"# } else { r#""logprobs": 1"# });
        let stream = streamed(dialect, &ask, &[silent, words], &ended(Stop::Stop));
        let chunks = events(&stream);
        let told: Vec<&Value> = chunks.iter().map(|(_, chunk)| &chunk["choices"][0]["logprobs"]).collect();
        let told: Vec<&&Value> = told.iter().filter(|logprobs| !logprobs.is_null()).collect();
        assert_eq!(told.len(), 2, "{stream}");
        if dialect == Dialect::Completions {
            assert_eq!(told[1]["text_offset"], json!([1]));
        }
    }
}

#[test]
fn a_response_is_told_item_by_item() {
    let ask = ask(Dialect::Responses);
    let stream = streamed(Dialect::Responses, &ask, &spoken(pieces()), &ended(Stop::ToolCalls));
    let expect = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names(&stream), expect);
    let events = events(&stream);
    for (number, (_, event)) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let whole = whole(&spoken(pieces()), &ended(Stop::ToolCalls));
    let whole: Value = serde_json::from_slice(&Dialect::Responses.write(&whole, &ask)).unwrap();
    assert_eq!(events.last().unwrap().1["response"], whole);
    let delta = json!({"type": "response.output_text.delta", "sequence_number": 10, "output_index": 1,
        "item_id": "msg_1_1", "content_index": 0, "delta": "so", "logprobs": []});
    assert_eq!(events[10].1, delta);
    let added = json!({"type": "message", "id": "msg_1_1", "status": "in_progress", "role": "assistant", "content": []});
    assert_eq!(events[8].1["item"], added);
    let done = json!({"type": "response.function_call_arguments.done", "sequence_number": 17, "output_index": 2,
        "item_id": "fc_1_2", "arguments": "{\"x\":1}"});
    assert_eq!(events[17].1, done);
}

#[test]
fn a_response_without_words_has_a_message_all_the_same() {
    let thoughts = spoken(vec![Piece::Reasoning("hm".into())]);
    let stream = streamed(Dialect::Responses, &ask(Dialect::Responses), &thoughts, &ended(Stop::Length));
    let (name, last) = events(&stream).pop().unwrap();
    assert_eq!(name.as_deref(), Some("response.incomplete"));
    assert_eq!(last["response"]["output"][1]["content"][0]["text"], "");
}

#[test]
fn a_message_is_told_block_by_block() {
    let ask = ask(Dialect::Messages);
    let stream = streamed(Dialect::Messages, &ask, &spoken(pieces()), &ended(Stop::ToolCalls));
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let [start, delta, stop] = block;
    let expect = [
        ["message_start"].as_slice(),
        &block,
        &block,
        &[start, delta, delta, stop],
        &["message_delta", "message_stop"],
    ];
    assert_eq!(names(&stream), expect.concat());
    let events: Vec<Value> = events(&stream).into_iter().map(|(_, data)| data).collect();
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 6, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 4, "output_tokens": 0}});
    assert_eq!(events[0]["message"], message);
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    assert_eq!(events[1]["content_block"], thinking);
    assert_eq!(events[5]["delta"], json!({"type": "text_delta", "text": "so"}));
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    assert_eq!((&events[7]["index"], &events[7]["content_block"]), (&json!(2), &call));
    assert_eq!(events[8]["delta"], json!({"type": "input_json_delta", "partial_json": "{\"x\":"}));
    assert_eq!(events[11]["delta"], json!({"stop_reason": "tool_use", "stop_sequence": null}));
    assert_eq!(events[11]["usage"]["output_tokens"], 5);
}

#[test]
fn a_failure_in_mid_stream_is_told_in_the_dialect() {
    let refusal = Refusal::new(Kind::Unavailable, "gone");
    for (dialect, name) in [
        (Dialect::Chat, None),
        (Dialect::Completions, None),
        (Dialect::Responses, Some("error")),
        (Dialect::Messages, Some("error")),
    ] {
        let mut out = Vec::new();
        dialect.voice(begun(), &ask(dialect)).fail(&refusal, &mut out);
        let (event, data) = events(std::str::from_utf8(&out).unwrap()).pop().unwrap();
        assert_eq!(event.as_deref(), name);
        assert_eq!(data["error"]["message"], "gone");
    }
}
