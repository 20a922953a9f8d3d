//! What cannot be answered says what is wrong, in the form of its dialect.

use serde_json::{Value, json};

use crate::server::{Server, ids, weights};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

#[test]
fn a_wrong_field_is_named_with_its_value() {
    let server = Server::start(weights(96, 1));
    let user = json!({"role": "user", "content": "1"});
    let chat = |fields: Value| {
        let mut body = json!({"messages": [user]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let tools = json!([{"type": "function", "function": {"name": "times"}}]);
    for (path, body, param, words) in [
        (CHAT, json!({}), "messages", "\"messages\" is missing"),
        (CHAT, json!({"messages": []}), "messages", "\"messages\" is missing"),
        (CHAT, json!({"messages": "hi"}), "messages", "invalid type: string \"hi\""),
        (CHAT, json!({"messages": ["hi"]}), "messages[0]", "\"messages[0]\" is \"hi\""),
        (CHAT, json!({"messages": [{"content": "hi"}]}), "messages[0].role", "is missing"),
        (
            CHAT,
            json!({"messages": [user, {"role": "boss"}]}),
            "messages[1].role",
            "is \"boss\", but must be one of system",
        ),
        (CHAT, json!({"messages": [{"role": "user", "content": 7}]}), "messages[0].content", "is 7"),
        (
            CHAT,
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "x"}}]}]}),
            "messages[0].content[1]",
            "is of type \"image_url\", but this model reads text only",
        ),
        (CHAT, chat(json!({"temperature": "hot"})), "temperature", "invalid type: string \"hot\""),
        (CHAT, chat(json!({"temperature": -1})), "temperature", "\"temperature\" is -1"),
        (CHAT, chat(json!({"top_p": 0})), "top_p", "\"top_p\" is 0"),
        (CHAT, chat(json!({"top_k": 0})), "top_k", "\"top_k\" is 0"),
        (CHAT, chat(json!({"max_tokens": -3})), "max_tokens", "integer `-3`"),
        (CHAT, chat(json!({"max_tokens": 2, "min_tokens": 5})), "min_tokens", "\"min_tokens\" is 5"),
        (CHAT, chat(json!({"n": 0})), "n", "\"n\" is 0"),
        (CHAT, chat(json!({"n": 100_000})), "n", "\"n\" is 100000, but must be between 1 and 1024"),
        (CHAT, chat(json!({"stop": 7})), "stop", "\"stop\" is 7"),
        (CHAT, chat(json!({"stop": ""})), "stop", "empty"),
        (
            CHAT,
            chat(json!({"logprobs": true, "top_logprobs": 21})),
            "top_logprobs",
            "is 21, but must be at most 20",
        ),
        (CHAT, chat(json!({"top_logprobs": 2})), "top_logprobs", "left out unless \"logprobs\" is true"),
        (CHAT, chat(json!({"tools": 7})), "tools", "\"tools\" is 7"),
        (CHAT, chat(json!({"tools": [{"name": "x"}]})), "tools", "{\"name\":\"x\"}"),
        (CHAT, chat(json!({"tools": tools, "tool_choice": "required"})), "tool_choice", "is \"required\""),
        (
            CHAT,
            chat(json!({"presence_penalty": 0.5})),
            "presence_penalty",
            "is 0.5, which this server cannot do",
        ),
        (CHAT, chat(json!({"response_format": {"type": "json_object"}})), "response_format", "json_object"),
        (TEXT, json!({}), "prompt", "\"prompt\" is missing"),
        (TEXT, json!({"prompt": {"a": 1}}), "prompt", "\"prompt\" is {\"a\":1}"),
        (TEXT, json!({"prompt": ""}), "prompt", "no tokens"),
        (TEXT, json!({"prompt": [1, 5000]}), "prompt", "the token 5000 at 1"),
        (TEXT, json!({"prompt": [1, -1]}), "prompt", "the token -1 at 1"),
        (TEXT, json!({"prompt": "1", "echo": true}), "echo", "is true, which this server cannot do"),
        (TEXT, json!({"prompt": "1", "logprobs": "all"}), "logprobs", "\"logprobs\" is \"all\""),
        (TEXT, json!({"prompt": vec!["1"; 600], "n": 2}), "n", "between 1 and 1"),
    ] {
        let (status, answer) = server.post(path, &body);
        let error = &answer["error"];
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{body}: {answer}");
        assert_eq!(error["type"], "invalid_request_error", "{answer}");
        assert!(error["message"].as_str().unwrap().contains(words), "{body}: {answer}");
    }
    assert_eq!(server.engine.stats().sampled, 0);
    // What says nothing is no mistake, and neither is what nobody knows.
    let neutral = chat(
        json!({"max_tokens": 1, "presence_penalty": 0.0, "logit_bias": {}, "response_format": {"type": "text"},
        "tools": [], "user": "me", "store": null, "parallel_tool_calls": true, "top_logprobs": null}),
    );
    server.ask(CHAT, &neutral);
}

#[test]
fn sglang_is_told_in_its_own_form() {
    let server = Server::start(weights(96, 1));
    for (body, words) in [
        (json!({}), "\"input_ids\" is missing"),
        (json!({"text": "1", "input_ids": [1]}), "give one"),
        (json!({"text": [1]}), "\"text\" is [1], but must be a text"),
        (json!({"input_ids": "1"}), "\"input_ids\" is \"1\", but must be token ids"),
        (json!({"input_ids": [107_000]}), "the token 107000 at 0"),
        (
            json!({"input_ids": [1], "sampling_params": {"temperature": "hot"}}),
            "\"sampling_params.temperature\"",
        ),
        (json!({"input_ids": [1], "sampling_params": {"n": 0}}), "\"n\" is 0"),
        (json!({"input_ids": [1], "sampling_params": {"regex": "a+"}}), "\"regex\" is \"a+\""),
        (
            json!({"input_ids": [1], "return_logprob": true, "top_logprobs_num": 99}),
            "\"top_logprobs_num\" is 99",
        ),
        (json!({"input_ids": [1], "rid": ""}), "\"rid\" is an empty text"),
        (json!({"input_ids": [[1], [2], [3]], "rid": ["a", "b"]}), "\"rid\" is 2 names"),
    ] {
        let (status, answer) = server.post("/generate", &body);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(words), "{body}: {status} {answer}");
        assert_eq!(answer["error"].as_object().unwrap().len(), 1, "{answer}");
    }
    for (path, body, words) in [
        ("/abort_request", json!({}), "\"rid\" is missing"),
        ("/pause_generation", json!({"mode": "retract"}), "\"mode\" is \"retract\""),
    ] {
        let (status, answer) = server.post(path, &body);
        assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    assert!(!server.engine.stats().paused);
}

#[test]
fn a_prompt_that_is_too_long_says_by_how_much() {
    let server = Server::start(weights(96, 1));
    let prompt = vec![20; 120];
    let words = "the prompt has 120 tokens, which is 25 too many";
    let (_, answer) = server.post(TEXT, &json!({"prompt": prompt}));
    assert_eq!(answer["error"]["code"], "context_length_exceeded");
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    let (_, answer) = server.post("/generate", &json!({"input_ids": prompt}));
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    let long = "1".repeat(120 - ids("<|user|><|end|><|assistant|>").len());
    let (_, answer) = server.post(CHAT, &json!({"messages": [{"role": "user", "content": long}]}));
    assert_eq!(
        (&answer["error"]["param"], &answer["error"]["code"]),
        (&json!("messages"), &json!("context_length_exceeded"))
    );
    // The longest that fits is answered with the one token that there is room for.
    let longest = server.ask(TEXT, &json!({"prompt": vec![20; 95], "ignore_eos": true}));
    assert_eq!(
        (&longest["usage"]["completion_tokens"], &longest["choices"][0]["finish_reason"]),
        (&json!(1), &json!("length"))
    );
}

#[test]
fn bodies_and_paths_that_make_no_sense_are_refused() {
    let server = Server::with(weights(96, 1), |settings| settings.body_bytes_max = 1000);
    for (body, status, code) in [
        ("", 400, "invalid_json"),
        ("{", 400, "invalid_json"),
        ("[1]", 400, "invalid_json"),
        ("{} {}", 400, "invalid_json"),
        ("{\"prompt\": \"\u{0}\"}", 400, "invalid_json"),
        (&format!("{{\"prompt\": {:?}}}", "1".repeat(1000)), 413, "too_large"),
    ] {
        let (found, answer) = server.send(TEXT, body, &[]);
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{body:?}: {answer}");
    }
    let (status, answer) = server.get("/v1/nothing");
    assert_eq!((status, &answer["error"]["type"]), (404, &json!("not_found_error")));
    assert!(server.get("/nothing").1["error"]["message"].as_str().unwrap().contains("/nothing"));
    assert_eq!(server.get(CHAT).0, 405);
    let (status, answer) =
        server.post(CHAT, &json!({"model": "gpt", "messages": [{"role": "user", "content": "1"}]}));
    assert_eq!((status, &answer["error"]["param"]), (404, &json!("model")));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"gpt\"") && message.contains("\"rollyard-tiny\""), "{message}");
}

#[test]
fn a_key_is_asked_for_on_every_call() {
    let server = Server::with(weights(96, 1), |settings| settings.api_key = Some("s3cret".to_owned()));
    let body = json!({"prompt": "1", "input_ids": [20]}).to_string();
    for path in [TEXT, "/generate", "/abort_request", "/update_weights_from_disk"] {
        let (status, answer) = server.send(path, &body, &[]);
        assert_eq!(status, 401, "{path}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("Authorization: Bearer"), "{answer}");
        assert_eq!(server.send(path, &body, &[("authorization", "Bearer wrong")]).0, 401, "{path}");
    }
    assert_eq!((server.get("/health").0, server.get("/v1/models").0), (401, 401));
    let key = [("authorization", "Bearer s3cret")];
    assert_eq!((server.send(TEXT, &body, &key).0, server.send("/generate", &body, &key).0), (200, 200));
}

#[test]
fn a_page_in_a_browser_does_not_reach_it() {
    let server = Server::start(weights(96, 1));
    let body = json!({"prompt": "1"}).to_string();
    let (status, answer) = server.send(TEXT, &body, &[("origin", "http://evil.example")]);
    assert_eq!((status, &answer["error"]["code"]), (403, &json!("wrong_origin")));
    let (status, answer) = server.send(TEXT, &body, &[("host", "evil.example")]);
    assert_eq!((status, &answer["error"]["code"]), (403, &json!("wrong_host")));
    assert_eq!(server.engine.stats().sampled, 0);
}
