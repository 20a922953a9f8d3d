//! Streams tell the same as whole answers, as it comes about.

use rollyard_tiny::model::Weights;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::server::{Server, scripted, weights};

fn question(fields: &Value) -> Value {
    let mut question =
        json!({"messages": [{"role": "user", "content": "12+34"}], "prompt": "12+34", "seed": 9});
    question.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    question
}

#[test]
fn a_streamed_chat_is_the_whole_one_in_pieces() {
    let server = Server::start(weights(96, 1));
    let fields = json!({"n": 3, "max_tokens": 30, "logprobs": true, "top_logprobs": 1, "return_token_ids": true,
        "stop": ["1", "ab"]});
    let whole = server.ask("/v1/chat/completions", &question(&fields));
    let mut streamed = question(&fields);
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_usage": true});
    let mut chunks: Vec<Value> = server.stream("/v1/chat/completions", &streamed).collect();
    let last = chunks.pop().unwrap();
    assert_eq!((&last["usage"], &last["choices"]), (&whole["usage"], &json!([])));
    for (nth, choice) in whole["choices"].as_array().unwrap().iter().enumerate() {
        let mine: Vec<&Value> = chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == nth).collect();
        assert!(mine.iter().all(|chunk| chunk["usage"].is_null() && chunk["id"] == last["id"]));
        assert_eq!(mine[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
        assert_eq!(mine[0]["prompt_token_ids"], whole["prompt_token_ids"]);
        let (end, pieces) = mine.split_last().unwrap();
        assert_eq!(end["choices"][0]["finish_reason"], choice["finish_reason"]);
        assert_eq!(end["metadata"], whole["metadata"]);
        let pieces: Vec<&Value> = pieces.iter().map(|chunk| &chunk["choices"][0]).collect();
        assert!(pieces.iter().all(|piece| piece["finish_reason"].is_null()));
        let text: String = pieces.iter().filter_map(|piece| piece["delta"]["content"].as_str()).collect();
        assert_eq!(text, choice["message"]["content"].as_str().unwrap());
        let joined = |pointer: &str| -> Value {
            pieces.iter().filter_map(|piece| piece.pointer(pointer)?.as_array()).flatten().cloned().collect()
        };
        assert_eq!(joined("/logprobs/content"), choice["logprobs"]["content"]);
        assert_eq!(joined("/token_ids"), choice["token_ids"]);
    }
}

#[test]
fn a_streamed_text_is_the_whole_one_in_pieces() {
    let server = Server::start(weights(96, 1));
    let fields = json!({"n": 2, "max_tokens": 30, "logprobs": 2, "return_token_ids": true, "stop": "ab"});
    let whole = server.ask("/completions", &question(&fields));
    let mut streamed = question(&fields);
    streamed["stream"] = json!(true);
    let chunks: Vec<Value> = server.stream("/completions", &streamed).collect();
    for (nth, choice) in whole["choices"].as_array().unwrap().iter().enumerate() {
        let pieces: Vec<&Value> =
            chunks.iter().map(|chunk| &chunk["choices"][0]).filter(|piece| piece["index"] == nth).collect();
        assert_eq!(pieces.last().unwrap()["finish_reason"], choice["finish_reason"]);
        assert_eq!(pieces[0]["prompt_token_ids"], choice["prompt_token_ids"]);
        let text: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
        assert_eq!(text, choice["text"].as_str().unwrap());
        let joined = |pointer: &str| -> Value {
            pieces.iter().filter_map(|piece| piece.pointer(pointer)?.as_array()).flatten().cloned().collect()
        };
        assert_eq!(joined("/token_ids"), choice["token_ids"]);
        for field in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
            assert_eq!(joined(&format!("/logprobs/{field}")), choice["logprobs"][field], "{field}");
        }
    }
}

#[test]
fn what_may_be_a_stop_is_not_told_before_it_is_none() {
    let server = Server::start(scripted(8, "a STOut b STOP c"));
    let fields = json!({"stop": ["STOP"], "stream": true});
    let chunks: Vec<Value> = server.stream("/v1/chat/completions", &question(&fields)).collect();
    let told: Vec<&str> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(told, ["", "a", " ", "STOu", "t", " ", "b", " "]);
}

#[test]
fn tokens_are_told_as_they_are_sampled() {
    // The engine cannot be through when the first piece is read: the answer is longer than what may lie in between.
    let server = Server::start(weights(30_000, 1));
    let fields = json!({"max_tokens": 29_000, "ignore_eos": true, "logprobs": true, "top_logprobs": 20, "stream": true});
    let mut chunks = server.stream("/v1/chat/completions", &question(&fields));
    chunks.nth(3).unwrap();
    let stats = server.engine.stats();
    assert!(stats.running == 1 && stats.sampled < 29_000, "{stats:?}");
    drop(chunks);
    server.until("cancelled", |stats| stats.running == 0);
    assert!(server.engine.stats().sampled < 29_000, "{:?}", server.engine.stats());
}

#[test]
fn a_model_that_fails_says_so_in_the_stream_and_without() {
    let mut broken = Weights::clone(&weights(96, 1));
    broken.values_mut().fill(f32::NAN);
    let server = Server::start(Arc::new(broken));
    for path in ["/v1/chat/completions", "/v1/completions", "/generate"] {
        let mut question = question(&json!({"text": "1"}));
        let (status, answer) = server.post(path, &question);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 500 && message.contains("the model failed"), "{path}: {status} {answer}");
        question["stream"] = json!(true);
        let last = server.stream(path, &question).last().unwrap();
        assert_eq!(last["error"], answer["error"], "{path}");
    }
}
