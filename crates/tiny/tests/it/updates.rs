//! New weights, and who may bring them from where.

use serde_json::{Value, json};
use std::sync::Arc;

use rollyard_tiny::model::{Shape, Weights};

use crate::server::{Server, scripted, weights};

fn said(server: &Server) -> (Value, Value) {
    let answer = server.ask("/generate", &json!({"input_ids": [20, 21]}));
    (answer["text"].clone(), answer["meta_info"]["weight_version"].clone())
}

#[test]
fn new_weights_answer_with_their_version() {
    let server = Server::start(scripted(2, "old"));
    assert_eq!(said(&server), (json!("old"), json!("0")));
    let path = server.save("new", &scripted(2, "new"));
    let told = server.ask("/update_weights_from_disk", &json!({"model_path": path}));
    assert_eq!((&told["success"], &told["weight_version"]), (&json!(true), &json!("1")));
    assert_eq!(said(&server), (json!("new"), json!("1")));
    let path = server.save("newer", &scripted(2, "newer"));
    for (given, version) in [(json!("7"), "7"), (json!(12), "12"), (json!(null), "13")] {
        server.ask("/update_weights_from_disk", &json!({"model_path": path, "weight_version": given}));
        assert_eq!(said(&server), (json!("newer"), json!(version)));
    }
    assert_eq!(server.get("/get_model_info").1["weight_version"], "13");
    let chat = server.ask("/v1/chat/completions", &json!({"messages": [{"role": "user", "content": "1"}]}));
    assert_eq!(chat["metadata"]["weight_version"], "13");
}

#[test]
fn weights_that_do_not_fit_change_nothing() {
    let server = Server::start(scripted(2, "old"));
    let outside = tempfile::tempdir().unwrap();
    let hidden = outside.path().join("hidden");
    std::fs::copy(server.save("good", &scripted(2, "new")), &hidden).unwrap();
    std::fs::write(server.dir.path().join("junk"), "junk").unwrap();
    std::os::unix::fs::symlink(&hidden, server.dir.path().join("link")).unwrap();
    let other = Weights::random(Shape { layers: 2, ..*weights(96, 1).shape() }, 1);
    let other = server.save("other", &Arc::new(other));
    let inside = |name: &str| server.dir.path().join(name);
    for (body, words) in [
        (json!({}), "\"model_path\" is missing"),
        (json!({"model_path": inside("nowhere")}), "there is no such file in the folders of --root"),
        (json!({"model_path": hidden}), "there is no such file in the folders of --root"),
        (json!({"model_path": inside("link")}), "there is no such file in the folders of --root"),
        (json!({"model_path": inside("junk")}), "this is no checkpoint"),
        (json!({"model_path": other}), "the new weights are of"),
        (json!({"model_path": inside("good"), "weight_version": "v2"}), "\"weight_version\" is \"v2\""),
        (json!({"model_path": inside("good"), "weight_version": -1}), "\"weight_version\" is -1"),
    ] {
        let (status, answer) = server.post("/update_weights_from_disk", &body);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(words), "{body}: {status} {message}");
        assert_eq!(said(&server), (json!("old"), json!("0")));
    }
    server.ask("/update_weights_from_disk", &json!({"model_path": inside("good")}));
    assert_eq!(said(&server).0, "new");
}

#[test]
fn a_stream_that_new_weights_interrupt_ends_with_what_it_has() {
    let server = Server::start(weights(30_000, 1));
    let path = server.save("next", &weights(30_000, 2));
    let question = json!({"messages": [{"role": "user", "content": "1"}], "ignore_eos": true, "stream": true,
        "return_token_ids": true});
    let mut chunks = server.stream("/v1/chat/completions", &question);
    let mut tokens = chunks.by_ref().take(5).map(|chunk| count(&chunk)).sum::<usize>();
    server.ask("/update_weights_from_disk", &json!({"model_path": path}));
    let rest: Vec<Value> = chunks.collect();
    tokens += rest.iter().map(count).sum::<usize>();
    let last = rest.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "abort");
    assert_eq!(last["metadata"]["weight_version"], "0", "what was said was said by the old ones");
    assert!(tokens > 0 && tokens < 29_000, "{tokens}");
    assert_eq!(server.get("/model_info").1["weight_version"], "1");
}

fn count(chunk: &Value) -> usize {
    chunk["choices"][0]["token_ids"].as_array().map_or(0, Vec::len)
}
