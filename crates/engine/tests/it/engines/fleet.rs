//! Several servers, some of which fail.

use futures_util::future::join_all;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{Engine, EngineError};
use rollyard_test_engine::{Settings, TestEngine};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use super::{client, config, request, start, uninterrupted, until};

/// Where nobody listens.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_what_may_not_is_not() {
    for (fail_status, asked) in [(500, 3), (502, 3), (503, 3), (429, 3), (400, 1), (401, 1), (404, 1)] {
        let server = start(Settings {
            fail_next: 2,
            fail_status,
            fail_retry_after: Some("0".into()),
            ..Settings::default()
        })
        .await;
        let outcome = client(Dialect::Sglang, &[&server]).generate(request(&[1], 4)).await;
        assert_eq!(server.counters().requests, asked, "status {fail_status}");
        match outcome {
            Ok(response) => assert_eq!(response.output_tokens, uninterrupted(&[1], 4)),
            Err(EngineError::Refused { status, message, .. }) => {
                assert_eq!((status, asked), (fail_status, 1));
                assert!(message.contains("on command"), "{message}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn after_the_last_attempt_the_last_error_is_given() {
    let server = start(Settings { fail_next: 9, fail_status: 503, ..Settings::default() }).await;
    let engine = HttpEngine::new(EngineConfig { attempts: 2, ..config(Dialect::Vllm, &[&server]) }).unwrap();
    let error = engine.generate(request(&[1], 4)).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 503, .. }), "{error}");
    assert_eq!(server.counters().requests, 2);
    assert_eq!(engine.servers()[0].failures, 2);
}

#[tokio::test]
async fn a_connection_that_closes_in_the_middle_is_asked_again() {
    let server = start(Settings { disconnect_next: 2, ..Settings::default() }).await;
    let response = client(Dialect::Sglang, &[&server]).generate(request(&[1], 4)).await.unwrap();
    assert_eq!(response.output_tokens, uninterrupted(&[1], 4));
    assert_eq!(server.counters().requests, 3);
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named_with_the_reason() {
    let address = free_address();
    let config = EngineConfig {
        attempts: 2,
        backoff_secs: 0.001,
        ..EngineConfig::of(Dialect::Sglang, address.to_string())
    };
    let error = HttpEngine::new(config).unwrap().generate(request(&[1], 4)).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("cannot be reached (Connection refused"), "{message}");
    assert!(message.ends_with(&format!("http://{address}/generate")), "{message}");
}

#[tokio::test]
async fn a_dead_server_among_three_costs_nobody_an_answer() {
    let (one, two) = (start(Settings::default()).await, start(Settings::default()).await);
    let dead = free_address();
    let mut config = config(Dialect::Sglang, &[&one, &two]);
    config.urls.insert(1, dead.to_string());
    let engine = HttpEngine::new(config).unwrap();
    let answers = join_all((1..=60).map(|prompt| engine.generate(request(&[prompt], 4)))).await;
    for (prompt, answer) in (1..).zip(answers) {
        assert_eq!(answer.unwrap().output_tokens, uninterrupted(&[prompt], 4));
    }
    assert_eq!(one.counters().requests + two.counters().requests, 60);
    let status = &engine.servers()[1];
    assert!(!status.healthy && status.failures > 0, "{status:?}");
    assert!(status.last_error.as_ref().unwrap().contains("refused"), "{status:?}");
    assert!(engine.servers()[0].healthy && engine.servers()[2].healthy);
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_how_it_is_and_used_again() {
    let one = start(Settings::default()).await;
    let address = free_address();
    let mut config = config(Dialect::Sglang, &[&one]);
    config.urls.push(address.to_string());
    let engine = HttpEngine::new(config).unwrap();
    while engine.servers()[1].healthy {
        engine.generate(request(&[1], 1)).await.unwrap();
    }
    // It listens, but is not ready: generations must not go there yet.
    let back =
        TestEngine::listen(address, Settings { health_status: 503, ..Settings::default() }).await.unwrap();
    let failures = engine.servers()[1].failures;
    while engine.servers()[1].failures == failures {
        engine.generate(request(&[1], 1)).await.unwrap();
    }
    assert_eq!(back.counters().requests, 0);
    back.change(|settings| settings.health_status = 200);
    while !engine.servers()[1].healthy || back.counters().requests == 0 {
        engine.generate(request(&[1], 1)).await.unwrap();
    }
}

#[tokio::test]
async fn requests_go_to_the_least_busy_server() {
    let servers = [start(hanging()).await, start(hanging()).await, start(hanging()).await];
    let engine = Arc::new(client(Dialect::Sglang, &servers.each_ref()));
    let tasks: Vec<_> = (0..12).map(|_| spawn(&engine)).collect();
    until("four on each", || servers.iter().all(|server| server.counters().in_flight == 4)).await;
    for task in tasks {
        task.abort();
    }
}

#[tokio::test]
async fn a_session_stays_with_its_server() {
    let servers = [start(Settings::default()).await, start(Settings::default()).await];
    let engine = client(Dialect::Sglang, &servers.each_ref());
    for session in ["a", "b", "c", "d"] {
        let before = servers.each_ref().map(|server| server.counters().requests);
        for _ in 0..5 {
            let mut request = request(&[1], 1);
            request.session = Some(session.into());
            engine.generate(request).await.unwrap();
        }
        let mut grown = [0, 1].map(|at| servers[at].counters().requests - before[at]);
        grown.sort_unstable();
        assert_eq!(grown, [0, 5], "session {session}");
    }
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_is_cancelled_on_the_server() {
    for dialect in [Dialect::Sglang, Dialect::Vllm] {
        let server = start(hanging()).await;
        let engine = Arc::new(client(dialect, &[&server]));
        let tasks: Vec<_> = (0..3).map(|_| spawn(&engine)).collect();
        until("all are under way", || server.counters().in_flight == 3).await;
        for task in &tasks {
            task.abort();
        }
        until("none is under way", || server.counters().in_flight == 0).await;
        let by_name = if dialect == Dialect::Sglang { 3 } else { 0 };
        until("SGLang is told", || server.counters().aborted_by_name == by_name).await;
        assert_eq!(engine.servers()[0].in_flight, 0);
    }
}

#[tokio::test]
async fn an_engine_that_does_not_answer_in_time_is_told_to_stop() {
    let server = start(hanging()).await;
    let config =
        EngineConfig { attempts: 1, request_timeout_secs: 0.1, ..config(Dialect::Sglang, &[&server]) };
    let error = HttpEngine::new(config).unwrap().generate(request(&[1], 4)).await.unwrap_err();
    assert_eq!(error, EngineError::Timeout { secs: 0.1, url: format!("{}/generate", server.url()) });
    until("it is told", || server.counters().aborted_by_name == 1).await;
}

fn hanging() -> Settings {
    Settings { hang: true, ..Settings::default() }
}

fn spawn(engine: &Arc<HttpEngine>) -> tokio::task::JoinHandle<()> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move { drop(engine.generate(request(&[1], 4)).await) })
}
