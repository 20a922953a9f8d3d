//! OpenAI's `/v1/completions` and `/v1/models`, and chat completions without tools.

use rollyard_tiny::train::{Lesson, Student};
use serde_json::{Value, json};

use crate::server::{Server, ids, scripted, weights};

fn hello() -> Value {
    json!({"messages": [{"role": "user", "content": "12+34"}]})
}

fn with(mut question: Value, fields: &Value) -> Value {
    question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    question
}

const PROMPT: &str = "<|user|>12+34<|end|><|assistant|>";

#[test]
fn a_chat_is_answered_as_its_tokens_are() {
    let server = Server::start(weights(96, 1));
    let fields = json!({"seed": 5, "max_tokens": 12, "ignore_eos": true});
    let chat = server.ask("/v1/chat/completions", &with(hello(), &fields));
    let choice = &chat["choices"][0];
    assert_eq!((&chat["object"], &chat["model"]), (&json!("chat.completion"), &json!("rollyard-tiny")));
    assert_eq!(chat["usage"], json!({"prompt_tokens": 8, "completion_tokens": 12, "total_tokens": 20}));
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["role"]),
        (&json!("length"), &json!("assistant"))
    );
    assert_eq!(chat["metadata"]["weight_version"], "0");
    for prompt in [json!(PROMPT), json!(ids(PROMPT)), json!([PROMPT]), json!([ids(PROMPT)])] {
        let text = server.ask("/v1/completions", &with(json!({"prompt": prompt}), &fields));
        assert_eq!(text["choices"][0]["text"], choice["message"]["content"]);
        assert_eq!((&text["object"], &text["usage"]), (&json!("text_completion"), &chat["usage"]));
    }
    for path in ["/chat/completions", "/v1/chat/completions"] {
        // Content in parts is one text.
        let parts = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "12+34"}]}]});
        let again = server.ask(path, &with(parts, &fields));
        assert_eq!(again["choices"][0]["message"], choice["message"]);
        assert_ne!(again["id"], chat["id"]);
    }
}

#[test]
fn logprobs_are_given_in_both_forms() {
    let model = weights(96, 1);
    let server = Server::start(model.clone());
    let fields = json!({"seed": 5, "max_tokens": 12, "return_token_ids": true});
    let chat = with(with(hello(), &fields), &json!({"logprobs": true, "top_logprobs": 2}));
    let chat = server.ask("/v1/chat/completions", &chat);
    let tokens: Vec<i32> = serde_json::from_value(chat["choices"][0]["token_ids"].clone()).unwrap();
    assert_eq!(chat["prompt_token_ids"], json!(ids(PROMPT)));
    let found = Student { threads: 1 }.logprobs(&model, &[Lesson::answer(&ids(PROMPT), &tokens)]).unwrap();
    let content = chat["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert_eq!(content.len(), tokens.len());
    for (entry, found) in content.iter().zip(&found) {
        assert!(
            (entry["logprob"].as_f64().unwrap() - f64::from(*found)).abs() < 1e-4,
            "{entry}, {found} found"
        );
        assert_eq!(entry["bytes"], json!(entry["token"].as_str().unwrap().as_bytes()));
        assert_eq!(entry["top_logprobs"].as_array().unwrap().len(), 2);
    }
    let text = with(with(json!({"prompt": PROMPT}), &fields), &json!({"logprobs": 2}));
    let text = server.ask("/v1/completions", &text);
    let (choice, logprobs) = (&text["choices"][0], &text["choices"][0]["logprobs"]);
    assert_eq!(choice["token_ids"], json!(tokens));
    assert_eq!(choice["prompt_token_ids"], json!(ids(PROMPT)));
    let of = |name: &str| content.iter().map(|entry| entry[name].clone()).collect::<Value>();
    assert_eq!((&logprobs["tokens"], &logprobs["token_logprobs"]), (&of("token"), &of("logprob")));
    let offsets = logprobs["text_offset"].as_array().unwrap();
    assert_eq!(offsets[0], 0);
    assert_eq!(offsets.len(), tokens.len());
    for (tops, entry) in logprobs["top_logprobs"].as_array().unwrap().iter().zip(content) {
        assert_eq!(tops[entry["token"].as_str().unwrap()], entry["logprob"]);
    }
}

#[test]
fn several_answers_and_several_prompts_come_in_order() {
    let server = Server::start(weights(96, 1));
    let fields = json!({"seed": 5, "max_tokens": 8, "n": 2, "return_token_ids": true});
    let both = server.ask("/v1/completions", &with(json!({"prompt": ["12", "345"]}), &fields));
    let choices = both["choices"].as_array().unwrap();
    let order: Vec<(Value, Value)> =
        choices.iter().map(|choice| (choice["index"].clone(), choice["prompt_token_ids"].clone())).collect();
    let (first, second) = (json!(ids("12")), json!(ids("345")));
    let want = [(json!(0), first.clone()), (json!(1), first), (json!(2), second.clone()), (json!(3), second)];
    assert_eq!(order, want);
    assert_ne!(choices[0]["token_ids"], choices[1]["token_ids"]);
    let sum: usize = choices.iter().map(|choice| choice["token_ids"].as_array().unwrap().len()).sum();
    assert_eq!(both["usage"], json!({"prompt_tokens": 5, "completion_tokens": sum, "total_tokens": 5 + sum}));
    let alone = server.ask("/v1/completions", &with(json!({"prompt": "345"}), &fields));
    assert_eq!(alone["choices"][1]["token_ids"], choices[3]["token_ids"]);
}

#[test]
fn a_stop_is_not_part_of_the_answer() {
    let server = Server::start(scripted(8, "well, 46 it is"));
    for (fields, text, reason) in [
        (json!({}), "well, 46 it is", "stop"),
        (json!({"max_completion_tokens": 4}), "well", "length"),
        (json!({"stop": [" it"]}), "well, 46", "stop"),
        (json!({"stop": "46", "max_tokens": null}), "well, ", "stop"),
    ] {
        let choice = &server.ask("/v1/chat/completions", &with(hello(), &fields))["choices"][0];
        assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(text), &json!(reason)));
    }
}

#[test]
fn the_model_is_listed_by_its_name() {
    let server = Server::with(weights(96, 1), |settings| settings.model_name = "a/b".to_owned());
    for path in ["/v1/models", "/models"] {
        assert_eq!(server.get(path).1["data"][0]["id"], "a/b");
    }
    assert_eq!(server.get("/v1/models/a/b").1["max_model_len"], 96);
    let (status, error) = server.get("/v1/models/c");
    assert_eq!((status, &error["error"]["code"]), (404, &json!("model_not_found")));
    let named = with(hello(), &json!({"model": "a/b", "max_tokens": 1}));
    assert_eq!(server.ask("/v1/chat/completions", &named)["model"], "a/b");
}
