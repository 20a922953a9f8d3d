//! Tools that the model calls.

use serde_json::{Value, json};

use crate::server::{Server, scripted};

const CALL: &str = "<tool_call>{\"name\": \"times\", \"arguments\": {\"a\": 6, \"b\": 7}}</tool_call>";

fn question(stream: bool, choice: &Value) -> Value {
    json!({"messages": [{"role": "user", "content": "6*7"}], "stream": stream, "tool_choice": choice,
        "tools": [{"type": "function", "function": {"name": "times", "parameters": {"type": "object"}}}]})
}

/// Text, calls as name and arguments, and why it ended.
type Said = (String, Vec<(String, String)>, String);

fn whole(server: &Server, choice: &Value) -> Said {
    let answer = server.ask("/v1/chat/completions", &question(false, choice));
    let message = &answer["choices"][0]["message"];
    let text = message["content"].as_str().unwrap_or_default().to_owned();
    (text, calls(&message["tool_calls"]), answer["choices"][0]["finish_reason"].as_str().unwrap().to_owned())
}

fn calls(list: &Value) -> Vec<(String, String)> {
    let call = |call: &Value| {
        assert!(call["type"] == "function" && call["id"].as_str().unwrap().starts_with("call-"), "{call}");
        let of = |name: &str| call["function"][name].as_str().unwrap().to_owned();
        (of("name"), of("arguments"))
    };
    list.as_array().map(|list| list.iter().map(call).collect()).unwrap_or_default()
}

fn streamed(server: &Server, choice: &Value) -> Said {
    let (mut text, mut called, mut reason) = (String::new(), Vec::new(), String::new());
    for chunk in server.stream("/v1/chat/completions", &question(true, choice)) {
        let choice = &chunk["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        called.extend(calls(&choice["delta"]["tool_calls"]));
        if let Some(why) = choice["finish_reason"].as_str() {
            assert!(reason.is_empty());
            why.clone_into(&mut reason);
        }
    }
    (text, called, reason)
}

#[test]
fn calls_in_an_answer_become_calls() {
    let call = |a: u32, b: u32| ("times".to_owned(), format!("{{\"a\": {a}, \"b\": {b}}}"));
    let other = CALL.replace('6', "5");
    for (answer, text, called) in [
        (CALL.to_owned(), "", vec![call(6, 7)]),
        (format!("Let me see.\n{CALL}"), "Let me see.", vec![call(6, 7)]),
        (format!("{CALL}\n{other}"), "", vec![call(6, 7), call(5, 7)]),
        ("42 < 43".to_owned(), "42 < 43", vec![]),
        // What nobody understands stays text.
        ("So <tool_call>times(6)</tool_call>".to_owned(), "So <tool_call>times(6)</tool_call>", vec![]),
        ("So <tool_call>{\"name\"".to_owned(), "So <tool_call>{\"name\"", vec![]),
    ] {
        // The prompt is <|user|>6*7<|end|><|assistant|>.
        let server = Server::start(scripted(6, &answer));
        let reason = if called.is_empty() { "stop" } else { "tool_calls" };
        let said: Said = (text.to_owned(), called, reason.to_owned());
        assert_eq!(whole(&server, &json!("auto")), said, "{answer}");
        assert_eq!(streamed(&server, &json!(null)), said, "{answer}");
        let plain: Said = (answer.clone(), Vec::new(), "stop".to_owned());
        assert_eq!(whole(&server, &json!("none")), plain, "{answer}");
        assert_eq!(streamed(&server, &json!("none")), plain, "{answer}");
    }
}

#[test]
fn what_was_called_and_what_came_of_it_is_part_of_the_conversation() {
    let server = Server::start(scripted(6, "42"));
    let call = json!({"id": "c", "type": "function", "function": {"name": "times", "arguments": "{\"a\": 6, \"b\": 7}"}});
    let messages = json!([
        {"role": "user", "content": "6*7"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
    ]);
    let answer = server.ask(
        "/v1/chat/completions",
        &json!({"messages": messages, "max_tokens": 1, "return_token_ids": true}),
    );
    let want = format!("<|user|>6*7<|end|><|assistant|>{CALL}<|end|><|tool|>42<|end|><|assistant|>");
    assert_eq!(answer["prompt_token_ids"], json!(crate::server::ids(&want)));
}
