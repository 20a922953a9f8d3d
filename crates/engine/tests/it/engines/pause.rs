//! A pause interrupts what is under way and holds it; then it goes on with the new weights.

use futures_util::future::join_all;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::Engine;
use rollyard_test_engine::Settings;
use std::sync::Arc;

use super::{assert_paired, client, config, request, start, uninterrupted, until, versions};

/// Slow enough that none ends by itself before the test has paused it.
fn slow() -> Settings {
    Settings { latency_ms_per_token: 20.0, ..Settings::default() }
}

#[tokio::test]
async fn a_pause_interrupts_and_a_resume_goes_on_with_new_weights() {
    for (dialect, can_abort_without_pause) in
        [(Dialect::Sglang, true), (Dialect::Vllm, true), (Dialect::Vllm, false)]
    {
        let server = start(Settings { can_abort_without_pause, ..slow() }).await;
        let engine = Arc::new(client(dialect, &[&server]));
        let ask = |prompt: i32| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.generate(request(&[prompt], 500)).await.unwrap() })
        };
        let early: Vec<_> = (0..8).map(ask).collect();
        until("all are under way", || server.counters().in_flight == 8).await;
        engine.pause().await.unwrap();
        assert_eq!(server.counters().in_flight, 0, "{dialect}");
        assert_eq!(engine.servers()[0].in_flight, 0);

        let late = ask(8);
        server.change(|settings| {
            settings.version = 1;
            settings.latency_ms_per_token = 0.0;
        });
        engine.set_version(1);
        tokio::task::yield_now().await;
        assert_eq!(server.counters().requests, 8, "{dialect}: sent while paused");
        assert!(early.iter().all(|task| !task.is_finished()));

        engine.resume().await.unwrap();
        for (prompt, response) in (0..).zip(join_all(early.into_iter().chain([late])).await) {
            let response = response.unwrap();
            assert_eq!(response.output_tokens, uninterrupted(&[prompt], 500), "{dialect}");
            let versions = versions(&response);
            assert!(versions.is_sorted() && versions.last() == Some(&1), "{dialect}: {versions:?}");
            assert_paired(&response, &versions);
            assert!(prompt != 8 || versions[0] == 1);
        }
    }
}

/// The engine does not say which weights it had, but its log-probs do: a token with a wrong version has a
/// log-prob that does not belong to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_token_is_sampled_with_weights_other_than_its_version_says() {
    let server = start(Settings { latency_ms_per_token: 0.5, ..Settings::default() }).await;
    let engine = Arc::new(client(Dialect::Vllm, &[&server]));
    let asks = (0..16).map(|prompt| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            for turn in 0..20 {
                let prompt = [prompt, turn];
                let response = engine.generate(request(&prompt, 8)).await.unwrap();
                assert_eq!(response.output_tokens, uninterrupted(&prompt, 8));
                assert_paired(&response, &versions(&response));
            }
        })
    });
    let asks: Vec<_> = asks.collect();
    let mut version = 0;
    while !asks.iter().all(tokio::task::JoinHandle::is_finished) {
        engine.pause().await.unwrap();
        assert_eq!(server.counters().in_flight, 0);
        version += 1;
        server.change(|settings| settings.version = version);
        engine.set_version(version);
        assert_eq!(server.counters().in_flight, 0);
        engine.resume().await.unwrap();
        let requests = server.counters().requests;
        let is_done = || asks.iter().all(tokio::task::JoinHandle::is_finished);
        until("it goes on", || server.counters().requests > requests + 16 || is_done()).await;
    }
    for ask in asks {
        ask.await.unwrap();
    }
    assert!(version > 1);
}

#[tokio::test]
async fn a_request_that_was_let_in_before_the_pause_is_not_sent_after_it() {
    let failing = Settings {
        fail_next: 1,
        fail_status: 503,
        fail_retry_after: Some("0".into()),
        ..Settings::default()
    };
    let server = start(Settings { health_latency_ms: 100, ..failing }).await;
    let config = EngineConfig { attempts: 1, ..config(Dialect::Sglang, &[&server]) };
    let engine = Arc::new(HttpEngine::new(config).unwrap());
    engine.generate(request(&[1], 4)).await.unwrap_err();

    // It passes the gate, and then waits to hear how the server is.
    let asked = Arc::clone(&engine);
    let task = tokio::spawn(async move { asked.generate(request(&[1], 4)).await.unwrap() });
    tokio::task::yield_now().await;
    engine.pause().await.unwrap();
    until("the server is well", || engine.servers()[0].healthy).await;
    engine.pause().await.unwrap();
    assert_eq!(server.counters().requests, 1);
    engine.resume().await.unwrap();
    assert_eq!(task.await.unwrap().output_tokens, uninterrupted(&[1], 4));
}

#[tokio::test]
async fn a_server_that_cannot_interrupt_finishes_what_it_has_before_the_pause_is_complete() {
    for dialect in Dialect::ALL {
        let server = start(Settings { can_abort: false, latency_ms: 200, ..Settings::default() }).await;
        let engine = Arc::new(client(dialect, &[&server]));
        let asked = Arc::clone(&engine);
        let task = tokio::spawn(async move {
            let message = serde_json::json!({"role": "user", "content": "hello"});
            let chat = super::chat_request(&[message]);
            asked.generate(if dialect == Dialect::Openai { chat } else { request(&[1], 4) }).await.unwrap()
        });
        until("it is under way", || server.counters().in_flight == 1).await;
        engine.pause().await.unwrap();
        assert_eq!(server.counters().in_flight, 0, "{dialect}");
        assert_eq!(server.counters().requests, 1);
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_pause_of_an_idle_engine_is_over_at_once_and_asks_nobody() {
    let server = start(Settings::default()).await;
    let url = server.url();
    let engine = client(Dialect::Sglang, &[&server]);
    drop(server);
    engine.pause().await.unwrap();
    engine.resume().await.unwrap();
    assert_eq!(engine.servers()[0].url, url);
}
