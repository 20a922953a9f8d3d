//! Agents go away and come back.

use http_body_util::BodyExt;
use rollyard_test_engine::Settings as EngineSettings;
use serde_json::json;
use std::time::Duration;

use super::house::{House, chat, until};
use crate::settings::Settings;

fn slow() -> EngineSettings {
    EngineSettings { latency_ms_per_token: 5.0, ..EngineSettings::default() }
}

#[tokio::test]
async fn an_agent_that_lost_its_connection_asks_again_and_joins() {
    let house = House::new(slow()).await;
    let keys = house.open(json!({})).await;
    let mut body = chat("Go");
    body["stream"] = json!(true);
    let response = house.send("/v1/chat/completions", &keys.api_key, &[], &body).await;
    let mut stream = response.into_body();
    for _ in 0..3 {
        stream.frame().await.unwrap().unwrap();
    }
    drop(stream);
    body["stream"] = json!(false);
    let (_, said) = house.ask(&keys.api_key, &body).await;
    assert_eq!(said["usage"]["completion_tokens"], 40);
    let live = house.gateway.find(&keys.session).unwrap();
    assert_eq!(live.row().turns, 1);
    assert_eq!(house.engine.recorded().len(), 1, "the engine was asked once");
    // What was heard to its end is asked anew: a second sample.
    let (_, again) = house.ask(&keys.api_key, &body).await;
    assert_ne!(again["id"], said["id"]);
    // Unless the client says that it repeats itself.
    let (_, repeated) = house.ask_with(&keys.api_key, &[("x-stainless-retry-count", "1")], &body).await;
    assert_eq!((&repeated["id"], &repeated["choices"]), (&again["id"], &again["choices"]));
    assert_eq!(live.row().turns, 2);
}

#[tokio::test]
async fn an_idempotency_key_names_one_answer() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    let key = [("idempotency-key", "a")];
    let (_, first) = house.ask_with(&keys.api_key, &key, &chat("Go")).await;
    let (_, second) = house.ask_with(&keys.api_key, &key, &chat("Go")).await;
    let (_, third) = house.ask_with(&keys.api_key, &[("idempotency-key", "b")], &chat("Go")).await;
    assert_eq!(first["id"], second["id"]);
    assert_ne!(first["id"], third["id"]);
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_stopped_and_not_trained_on() {
    let settings = Settings { hang_up_grace: Duration::from_millis(50), ..Settings::default() };
    let house = House::with(slow(), settings).await;
    let keys = house.open(json!({})).await;
    let mut body = chat("Go");
    body["stream"] = json!(true);
    body["max_tokens"] = json!(1900);
    let response = house.send("/v1/chat/completions", &keys.api_key, &[], &body).await;
    let mut stream = response.into_body();
    for _ in 0..4 {
        stream.frame().await.unwrap().unwrap();
    }
    drop(stream);
    let live = house.gateway.find(&keys.session).unwrap();
    until(|| live.row().turns == 1).await;
    let turn = &live.view().turns[0];
    assert_eq!((turn.stop, turn.is_unheard), ("abort", true));
    assert!(turn.sampled_tokens < 1000, "{}", turn.sampled_tokens);
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    assert!(house.yard.items().is_empty());
}

#[tokio::test]
async fn a_session_that_is_closed_stops_what_is_under_way_with_the_reason() {
    let house = House::new(slow()).await;
    let keys = house.open(json!({})).await;
    let mut body = chat("Go");
    body["max_tokens"] = json!(1900);
    let asking = house.ask(&keys.api_key, &body);
    let closing = async {
        let live = house.gateway.find(&keys.session).unwrap();
        until(|| live.row().facts.running == 1).await;
        house.gateway.abandon(&live, "enough").await.unwrap();
    };
    let ((status, said), ()) = tokio::join!(asking, closing);
    assert_eq!(status.as_u16(), 409);
    assert!(said["error"]["message"].as_str().unwrap().contains("closed"), "{said}");
    let (status, said) = house.ask(&keys.api_key, &body).await;
    assert_eq!(status.as_u16(), 409);
    assert!(said["error"]["message"].as_str().unwrap().contains("abandoned: enough"), "{said}");
}

#[tokio::test]
async fn an_answer_that_was_fetched_late_is_trained_on() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    let mut body = chat("Go");
    body["stream"] = json!(true);
    drop(house.send("/v1/chat/completions", &keys.api_key, &[], &body).await);
    let live = house.gateway.find(&keys.session).unwrap();
    until(|| live.row().turns == 1).await;
    assert!(live.view().turns[0].is_unheard);
    body["stream"] = json!(false);
    house.ask(&keys.api_key, &body).await;
    assert_eq!(live.row().turns, 1);
    let house = house.restarted();
    let live = house.gateway.find(&keys.session).unwrap();
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    assert_eq!(house.yard.items().len(), 1);
}
