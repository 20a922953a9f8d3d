//! Engines that fail: what is their fault is waited out, what is the prompt's is written as failed.

use rollyard_engine::task::TaskError;
use rollyard_test_engine::{Dialects, Settings, TestEngine};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MemoryShelf, Problems, begin, engine, four, payload, run, uids};
use crate::engines::until;
use crate::examples;

async fn again(address: SocketAddr, settings: Settings) -> TestEngine {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match TestEngine::listen(address, settings.clone()).await {
            Ok(server) => return server,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_engine_that_is_not_there_yet_is_waited_for() {
    let server = engine(four()).await;
    let (address, url) = (server.address(), server.url());
    drop(server);
    let problems = Problems::new(3);
    let running = begin(&payload(&url, &problems.path(), json!({})), &Arc::default());
    let says = |start: &str| running.progress.last_error().is_some_and(|error| error.starts_with(start));
    until("the engine is missed", || says(&format!("engine unreachable: {url}: "))).await;
    let _server = again(address, four()).await;
    let shelf = Arc::clone(&running.shelf);
    let counts = running.end().await.unwrap().counts;
    assert_eq!((counts.failed, counts.written, counts.last_error), (0, 3, None));
    assert_eq!(shelf.uids(), uids(0..3, 1, 1));
}

#[tokio::test]
async fn an_outage_in_the_middle_becomes_no_data() {
    let server = engine(Settings { latency_ms: 5, ..four() }).await;
    let (address, url) = (server.address(), server.url());
    let problems = Problems::new(60);
    let over = json!({"max_concurrent": 4, "num_repeat_per_sample": 2});
    let running = begin(&payload(&url, &problems.path(), over), &Arc::default());
    running.written(10).await;
    drop(server);
    until("the outage is told", || running.progress.last_error().is_some()).await;
    assert!(running.progress.line().contains("under way; engine "), "{}", running.progress.line());
    let _server = again(address, four()).await;
    let shelf = Arc::clone(&running.shelf);
    let counts = running.end().await.unwrap().counts;
    assert_eq!(shelf.uids(), uids(0..60, 1, 2));
    assert_eq!((counts.made, counts.failed, counts.written, counts.last_error), (120, 0, 120, None));
    assert_eq!(shelf.twice(), 0);
}

#[tokio::test]
async fn a_server_that_only_answers_with_errors_is_an_outage_too() {
    // More often than the client tries by itself.
    for (dialects, status, times) in
        [(Dialects::Openai, 503, 7), (Dialects::Vllm, 500, 7), (Dialects::Sglang, 401, 3)]
    {
        let settings = Settings { dialects, fail_next: times, fail_status: status, ..four() };
        let server = engine(settings).await;
        let problems = Problems::new(1);
        let shelf = Arc::new(MemoryShelf::default());
        let counts = run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await.counts;
        assert_eq!((counts.made, counts.failed), (1, 0), "{status}");
        assert_eq!(server.settings().fail_next, 0);
    }
}

#[tokio::test]
async fn a_prompt_that_is_refused_is_written_as_failed() {
    let settings = Settings { fail_where: Some("What is 3?".into()), fail_status: 400, ..four() };
    let server = engine(settings).await;
    let problems = Problems::new(6);
    let shelf = Arc::new(MemoryShelf::default());
    let fields = payload(&server.url(), &problems.path(), json!({"num_repeat_per_sample": 2}));
    let counts = run(&fields, &shelf).await.counts;
    assert_eq!((counts.made, counts.failed, counts.written), (10, 2, 12));
    let item = shelf.item("p_3:0:1");
    assert_eq!(item["reward"], -1.0);
    assert_eq!(item["messages"], json!([{"role": "user", "content": "What is 3?"}]));
    let extra = &item["extra_info"];
    assert!(extra["error"].as_str().unwrap().contains("status 400"), "{extra}");
    assert_eq!(
        (&extra["finish_reason"], &extra["round_number"], &extra["label"]),
        (&json!("error"), &json!(0), &json!(3))
    );
    assert!(counts.last_error.unwrap().starts_with("p_3:0:"));
}

#[tokio::test]
async fn a_prompt_that_breaks_a_well_engine_does_not_hold_the_task_for_ever() {
    let settings = Settings { fail_where: Some("What is 3?".into()), fail_status: 500, ..four() };
    let server = engine(settings).await;
    let problems = Problems::new(5);
    let shelf = Arc::new(MemoryShelf::default());
    let counts = run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await.counts;
    assert_eq!((counts.made, counts.failed, counts.written), (4, 1, 5));
    let item = shelf.item("p_3:0:0");
    assert_eq!(item["reward"], -1.0);
    assert!(item["extra_info"]["error"].as_str().unwrap().contains("status 500"), "{item}");
}

#[tokio::test]
async fn an_engine_that_refuses_every_prompt_ends_the_task_early() {
    let server = engine(Settings { fail_where: Some("What is".into()), fail_status: 400, ..four() }).await;
    let problems = Problems::new(1000);
    let running =
        begin(&payload(&server.url(), &problems.path(), json!({"max_concurrent": 4})), &Arc::default());
    let shelf = Arc::clone(&running.shelf);
    let error = running.end().await.unwrap_err();
    assert!(matches!(error, TaskError::AllFailed { times: 64..68, .. }), "{error}");
    assert!(error.to_string().contains("status 400"), "{error}");
    assert!(shelf.len() < 72, "{}", shelf.len());
}

#[tokio::test]
async fn a_template_that_refuses_a_conversation_fails_that_rollout_only() {
    let folder = examples::model();
    let template = "{% if messages[0].content == 'no' %}{{ raise_exception('Not this.') }}{% endif %}\
                    {{ messages[0].content }}";
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let server = engine(Settings { vocabulary: 600, ..Settings::default() }).await;
    let problems = Problems::of(
        &["no", "yes"].map(|id| json!({"instance_id": id, "prompt": id, "label": 4}).to_string()).join("\n"),
    );
    let shelf = Arc::new(MemoryShelf::default());
    let fields = payload(&server.url(), &problems.path(), json!({"tokenizer_path": folder.path()}));
    let counts = run(&fields, &shelf).await.counts;
    assert_eq!((counts.made, counts.failed), (1, 1));
    assert!(shelf.item("no:0:0")["extra_info"]["error"].as_str().unwrap().contains("Not this."));
}

#[tokio::test]
async fn an_engine_that_cannot_give_what_is_asked_ends_the_task() {
    let folder = examples::model();
    let server = engine(Settings { gives_logprobs: false, vocabulary: 600, ..Settings::default() }).await;
    let problems = Problems::new(3);
    let fields = payload(&server.url(), &problems.path(), json!({"tokenizer_path": folder.path()}));
    let running = begin(&fields, &Arc::default());
    let shelf = Arc::clone(&running.shelf);
    let error = running.end().await.unwrap_err();
    assert!(matches!(error, TaskError::Engine(_)) && error.to_string().contains("log-probs"), "{error}");
    assert_eq!(shelf.len(), 0);
}
