//! Clients that go away, and a server that does.

use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::server::{Server, ids, weights};

fn begin(server: &Server, path: &str, body: &str) -> TcpStream {
    let host = server.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    write!(socket, "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    socket
}

#[test]
fn who_hangs_up_is_sampled_for_no_longer() {
    let server = Server::start(weights(30_000, 1));
    for (path, stream) in
        [("/generate", false), ("/generate", true), ("/v1/completions", false), ("/v1/completions", true)]
    {
        let before = server.engine.stats().sampled;
        let sampling = json!({"max_new_tokens": 29_000, "ignore_eos": true});
        let mut body = json!({"stream": stream, "sampling_params": sampling, "n": 2, "max_tokens": 29_000, "ignore_eos": true});
        let field = if path == "/generate" { "input_ids" } else { "prompt" };
        body[field] = json!(ids("12"));
        let socket = begin(&server, path, &body.to_string());
        server.until("sampling", |stats| stats.running > 0 && stats.sampled > before + 10);
        drop(socket);
        server.until("cancelled", |stats| stats.running == 0);
        let sampled = server.engine.stats().sampled - before;
        assert!(sampled < 29_000, "{path}, stream {stream}: {sampled} tokens");
    }
}

#[test]
fn who_waits_at_a_pause_and_hangs_up_leaves_the_queue() {
    let server = Server::start(weights(96, 1));
    server.ask("/pause_generation", &json!({}));
    let socket = begin(&server, "/generate", &json!({"input_ids": [20]}).to_string());
    server.until("waiting", |stats| stats.waiting == 1);
    drop(socket);
    server.until("gone", |stats| stats.waiting == 0);
}

#[test]
fn an_abort_ends_the_request_that_is_named() {
    let server = Server::start(weights(30_000, 1));
    let ask = |rid: &str| {
        let agent = ureq::Agent::new_with_config(ureq::Agent::config_builder().proxy(None).build());
        let url = format!("{}/generate", server.url);
        let body = json!({"input_ids": [20], "rid": rid, "sampling_params": {"max_new_tokens": 29_000, "ignore_eos": true}});
        std::thread::spawn(move || {
            let text = agent.post(url).send(body.to_string()).unwrap().body_mut().read_to_string().unwrap();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        })
    };
    let (one, other) = (ask("one"), ask("other"));
    server.until("sampling", |stats| stats.running == 2 && stats.sampled > 10);
    assert_eq!(server.ask("/abort_request", &json!({"rid": "nobody"}))["aborted"], 0);
    assert_eq!(server.ask("/abort_request", &json!({"rid": "one"}))["aborted"], 1);
    let answer = one.join().unwrap();
    assert_eq!(answer["meta_info"]["finish_reason"]["type"], "abort");
    assert!(!answer["output_ids"].as_array().unwrap().is_empty());
    assert_eq!(server.engine.stats().running, 1);
    assert_eq!(server.ask("/abort_request", &json!({"abort_all": true}))["aborted"], 1);
    assert_eq!(other.join().unwrap()["meta_info"]["finish_reason"]["type"], "abort");
}

#[test]
fn a_server_that_stops_answers_what_waits_at_a_pause() {
    let server = Server::start(weights(96, 1));
    server.ask("/pause_generation", &json!({}));
    let socket = begin(&server, "/generate", &json!({"input_ids": [20]}).to_string());
    server.until("waiting", |stats| stats.waiting == 1);
    server.stop();
    let mut answer = String::new();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    std::io::Read::read_to_string(&mut &socket, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"abort\""), "{answer}");
}
