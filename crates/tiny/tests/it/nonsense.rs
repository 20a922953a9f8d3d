//! Whatever is sent, an answer comes back, and a refusal says why.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

use crate::server::{Server, weights};

static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start(weights(96, 1)));

const FIELDS: [&str; 32] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "prompt",
    "input_ids",
    "text",
    "sampling_params",
    "rid",
    "max_tokens",
    "min_tokens",
    "max_new_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "seed",
    "sampling_seed",
    "n",
    "logprobs",
    "top_logprobs",
    "return_logprob",
    "top_logprobs_num",
    "return_token_ids",
    "echo",
    "best_of",
    "logit_bias",
    "request_id",
    "unheard_of",
];

fn values() -> Vec<Value> {
    let user = json!({"role": "user", "content": "1"});
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(2.5),
        json!(1e30),
        json!(u64::MAX),
        json!(""),
        json!("1"),
        json!("ü<|end|>"),
        json!([]),
        json!([1]),
        json!([20, 30]),
        json!([[1], [2]]),
        json!([-1]),
        json!([1e9]),
        json!(["a", ""]),
        json!(["a", 1]),
        json!({}),
        json!({"a": 1}),
        json!([user]),
        json!([user, {"role": "assistant", "content": null, "tool_calls": 7}]),
        json!([{"role": "tool"}]),
        json!([{"role": "user", "content": [{"type": "text", "text": "a"}]}]),
        json!([{"role": "user", "content": [7]}]),
        json!([{"type": "function", "function": {"name": "f"}}]),
        json!({"max_new_tokens": 2, "n": 2, "stop": ["a"]}),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    let fields = proptest::sample::select(FIELDS.to_vec());
    let pairs = proptest::collection::vec((fields, proptest::sample::select(values())), 0..6);
    pairs.prop_map(|pairs| {
        let mut body: Map<String, Value> = Map::new();
        // Something to begin with, so that what else there is matters.
        body.insert("max_tokens".to_owned(), json!(2));
        body.insert("prompt".to_owned(), json!("1"));
        body.insert("messages".to_owned(), json!([{"role": "user", "content": "1"}]));
        body.insert("input_ids".to_owned(), json!([20]));
        body.extend(pairs.into_iter().map(|(field, value)| (field.to_owned(), value)));
        body.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_answer_comes_to_anything(
        body in body(),
        path in proptest::sample::select(vec!["/generate", "/v1/completions", "/v1/chat/completions"]),
    ) {
        let (status, answer) = SERVER.post(path, &body);
        match status {
            200 => prop_assert!(answer.get("error").is_none(), "{answer}"),
            400 | 404 => {
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                prop_assert!(!message.is_empty(), "{answer}");
            }
            other => prop_assert!(false, "{path} {body}: {other} {answer}"),
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused(text in "[\\[\\]{}\":,0-9a-z ü\\\\]{0,40}") {
        let (status, answer) = SERVER.send("/generate", &text, &[]);
        prop_assert_eq!(status, 400, "{}", answer);
    }
}
