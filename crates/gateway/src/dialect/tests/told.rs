//! What is told at once: answers, refusals and models.

use super::*;
use crate::dialect::{model, models};
use crate::refusal::{Kind, Refusal};
use serde_json::{Value, json};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn told(dialect: Dialect, more: &str, pieces: Vec<Piece>, ended: &Ended) -> Value {
    let mut all = spoken(pieces);
    let ask = read(dialect, more);
    if let Some(first) = all.first_mut().filter(|_| ask.logprobs) {
        first.tokens = vec![spelled("é"), spelled("b")];
    }
    value(&dialect.write(&whole(&all, ended), &ask))
}

#[test]
fn a_chat_completion_has_everything() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}});
    let token =
        |text: &str| json!({"token": text, "bytes": text.as_bytes(), "logprob": -0.5, "top_logprobs": []});
    let told = told(Dialect::Chat, r#""logprobs": true"#, pieces(), &ended(Stop::ToolCalls));
    let expect = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [call],
                "refusal": null},
            "logprobs": {"content": [token("é"), token("b")], "refusal": null}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}},
    });
    assert_eq!(told, expect);
}

#[test]
fn content_is_null_only_beside_calls() {
    let call = vec![Piece::CallBegun { index: 0, id: "c".into(), name: "f".into() }];
    let message =
        |pieces| told(Dialect::Chat, "", pieces, &ended(Stop::Stop))["choices"][0]["message"].clone();
    assert_eq!(message(call)["content"], Value::Null);
    assert_eq!(message(Vec::new()), json!({"role": "assistant", "content": "", "refusal": null}));
}

#[test]
fn a_completion_counts_offsets_in_characters() {
    let pieces = vec![Piece::Content("éb".into())];
    let told = told(Dialect::Completions, r#""logprobs": 1"#, pieces, &ended(Stop::Length));
    let logprobs = json!({"tokens": ["é", "b"], "token_logprobs": [-0.5, -0.5], "top_logprobs": null, "text_offset": [0, 1]});
    let choice = json!({"index": 0, "text": "éb", "logprobs": logprobs, "finish_reason": "length"});
    assert_eq!(told["choices"], json!([choice]));
    assert_eq!((&told["id"], &told["object"]), (&json!("cmpl-1"), &json!("text_completion")));
}

#[test]
fn a_response_has_items() {
    let tool = r#"{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}"#;
    let more = format!(r#""tools": [{tool}], "tool_choice": "required", "previous_response_id": "resp_0""#);
    let told = told(Dialect::Responses, &more, pieces(), &ended(Stop::ToolCalls));
    let output = json!([
        {"type": "reasoning", "id": "rs_1_0", "summary": [], "status": "completed",
            "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "so", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_1_2", "call_id": "c", "name": "f", "arguments": "{\"x\":1}",
            "status": "completed"},
    ]);
    let expect = json!({
        "id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null, "metadata": {},
        "model": "m", "output": output, "parallel_tool_calls": true, "previous_response_id": "resp_0",
        "temperature": null, "tool_choice": "required", "top_p": null, "truncation": "disabled",
        "tools": [{"type": "function", "name": "f", "description": null, "parameters": {"type": "object"},
            "strict": null}],
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
    });
    assert_eq!(told, expect);
}

#[test]
fn a_response_that_was_cut_is_incomplete() {
    let told = told(Dialect::Responses, "", vec![Piece::Content("so".into())], &ended(Stop::Length));
    assert_eq!(told["status"], "incomplete");
    assert_eq!(told["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(told["output"][0]["status"], "incomplete");
}

#[test]
fn a_message_has_blocks() {
    let told = told(Dialect::Messages, "", pieces(), &ended(Stop::ToolCalls));
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}},
    ]);
    let expect = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4,
            "output_tokens": 5},
    });
    assert_eq!(told, expect);
}

#[test]
fn a_message_says_what_stopped_it() {
    let stopped = Ended { stop_text: Some("END".into()), ..ended(Stop::Stop) };
    for (ended, reason, sequence) in [
        (ended(Stop::Stop), "end_turn", Value::Null),
        (stopped, "stop_sequence", json!("END")),
        (ended(Stop::Length), "max_tokens", Value::Null),
    ] {
        let told = told(Dialect::Messages, "", Vec::new(), &ended);
        assert_eq!((&told["stop_reason"], &told["stop_sequence"]), (&json!(reason), &sequence));
    }
}

#[test]
fn arguments_that_are_no_object_are_told_all_the_same() {
    for (json, expect) in
        [("", json!({})), ("{\"x", json!({"INVALID_JSON": "{\"x"})), ("5", json!({"INVALID_JSON": "5"}))]
    {
        let call = Piece::CallBegun { index: 0, id: "c".into(), name: "f".into() };
        let arguments = Piece::CallArguments { index: 0, json: json.into() };
        let told = told(Dialect::Messages, "", vec![call, arguments], &ended(Stop::Length));
        assert_eq!(told["content"][0]["input"], expect);
    }
}

#[test]
fn refusals_have_the_names_of_the_dialect() {
    for (kind, code, anthropic) in [
        (Kind::BadRequest, Value::Null, "invalid_request_error"),
        (Kind::ContextLength, json!("context_length_exceeded"), "invalid_request_error"),
        (Kind::Unauthorized, json!("invalid_api_key"), "authentication_error"),
        (Kind::Forbidden, json!("permission_denied"), "permission_error"),
        (Kind::NotFound, json!("model_not_found"), "not_found_error"),
        (Kind::Conflict, json!("conflict"), "invalid_request_error"),
        (Kind::TooLarge, json!("request_too_large"), "request_too_large"),
        (Kind::NoCapacity, json!("rate_limit_exceeded"), "rate_limit_error"),
        (Kind::Internal, json!("server_error"), "api_error"),
        (Kind::Engine, json!("server_error"), "api_error"),
        (Kind::Unavailable, json!("service_unavailable"), "overloaded_error"),
    ] {
        let refusal = Refusal { kind, ..Refusal::field("model", "no") };
        for dialect in [Dialect::Chat, Dialect::Completions, Dialect::Responses] {
            let told = value(&dialect.refuse(&refusal));
            assert_eq!((&told["error"]["code"], &told["error"]["param"]), (&code, &json!("model")));
            assert_eq!(told["error"]["message"], "no");
        }
        let told = value(&Dialect::Messages.refuse(&refusal));
        assert_eq!((&told["type"], &told["error"]["type"]), (&json!("error"), &json!(anthropic)));
    }
}

#[test]
fn what_is_not_found_is_named_by_its_field() {
    for (field, code) in [
        ("model", "model_not_found"),
        ("previous_response_id", "previous_response_not_found"),
        ("path", "not_found"),
    ] {
        let refusal = Refusal { kind: Kind::NotFound, ..Refusal::field(field, "no") };
        assert_eq!(value(&Dialect::Responses.refuse(&refusal))["error"]["code"], code);
    }
}

#[test]
fn a_thread_that_goes_on_is_told_to_begin_again() {
    let thread = |thread: &str| Dialect::Messages.read(body(Dialect::Messages, thread).as_bytes());
    assert!(thread(r#""thread": {"type": "create"}"#).is_ok());
    let lost = thread(r#""thread": {"type": "continue", "previous_message_id": "msg_1"}"#).unwrap_err();
    assert_eq!(lost.kind.status(), 404);
    let told = value(&Dialect::Messages.refuse(&lost));
    assert_eq!(told["error"]["details"], json!({"error_code": "thread_not_found"}));
}

#[test]
fn models_suit_both_clients() {
    let one = json!({"id": "m", "object": "model", "created": 7, "owned_by": "rollyard", "type": "model",
        "display_name": "m", "created_at": "1970-01-01T00:00:07Z", "lifecycle": "active"});
    assert_eq!(value(&model("m", 7)), one);
    let list = json!({"object": "list", "data": [one], "has_more": false, "first_id": "m", "last_id": "m"});
    assert_eq!(value(&models(&["m"], 7)), list);
    assert_eq!(value(&models(&[], u64::MAX))["data"], json!([]));
}
