//! What an agent gets for what it asks.

use axum::http::StatusCode;
use rollyard_test_engine::Settings as EngineSettings;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

use super::house::{House, chat, until};

#[tokio::test]
async fn a_conversation_with_tools_is_one_line_of_exact_tokens() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    let call = "<think>\nhm\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
    house.says(&[call, "<think>\nso\n</think>\n\nIt is 7."]);
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let mut body = chat("What is f(1)?");
    body["max_tokens"] = json!(400);
    body["tools"] = tools;
    let (status, said) = house.ask(&keys.api_key, &body).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let message = &said["choices"][0]["message"];
    assert_eq!(said["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(message["reasoning_content"], "hm");
    let made = &message["tool_calls"][0];
    assert_eq!(made["function"]["arguments"], "{\"x\": 1}");
    // As a framework sends it back: another writing, no thoughts.
    let echo = json!({"role": "assistant", "content": message["content"], "tool_calls": [{"id": made["id"], "type": "function",
        "function": {"name": "f", "arguments": "{\"x\":1}"}}]});
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(echo);
    messages.push(json!({"role": "tool", "tool_call_id": made["id"], "content": "7"}));
    let (_, said) = house.ask(&keys.api_key, &body).await;
    assert_eq!(said["choices"][0]["message"]["content"], "It is 7.");
    let live = house.gateway.find(&keys.session).unwrap();
    let view = live.view();
    assert_eq!(
        view.turns.iter().map(|turn| (turn.follows, turn.cut)).collect::<Vec<_>>(),
        [(None, None), (Some(0), None)]
    );
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    let items = house.yard.items();
    assert_eq!(items.len(), 1);
    let tokens = [&items[0]["prompt_tokens"], &items[0]["response_tokens"]]
        .map(|part| part.as_array().unwrap().clone())
        .concat();
    let received = house.engine.recorded();
    let all: Vec<i64> = tokens.iter().map(|token| token.as_i64().unwrap()).collect();
    for prompt in &received {
        let prompt: Vec<i64> = prompt.iter().map(|token| i64::from(*token)).collect();
        assert_eq!(all[..prompt.len()], prompt);
    }
    assert_eq!(items[0]["prompt_tokens"].as_array().unwrap().len(), received[0].len());
    let counted = items[0]["loss_mask"].as_array().unwrap().iter().filter(|on| **on == json!(1)).count();
    assert_eq!(counted as u64, view.facts.sampled_tokens);
}

#[tokio::test]
async fn several_choices_are_siblings_and_each_is_trained_once() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    house.says(&["one", "two", "three"]);
    let mut body = chat("Go");
    body["n"] = json!(3);
    let (_, said) = house.ask(&keys.api_key, &body).await;
    let mut texts: Vec<&str> = said["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["message"]["content"].as_str().unwrap())
        .collect();
    texts.sort_unstable();
    assert_eq!(texts, ["one", "three", "two"]);
    let live = house.gateway.find(&keys.session).unwrap();
    let id = format!("{}/1", said["id"].as_str().unwrap());
    assert!(house.gateway.reward(&live, Some(&id), 0.5).await.is_err(), "a name that is not there");
    house.gateway.reward(&live, said["id"].as_str(), 0.5).await.unwrap();
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    let items = house.yard.items();
    assert_eq!(items.len(), 3);
    let mut rewards: Vec<f64> = items.iter().map(|item| item["reward"].as_f64().unwrap()).collect();
    rewards.sort_by(f64::total_cmp);
    assert_eq!(rewards, [0.5, 1.0, 1.0]);
}

#[tokio::test]
async fn weights_that_change_in_the_middle_stand_on_their_tokens() {
    let settings = EngineSettings {
        version: 3,
        version_grows_with_aborts: true,
        abort_next: vec![4],
        ..EngineSettings::default()
    };
    let house = House::new(settings).await;
    let keys = house.open(json!({})).await;
    let mut body = chat("Go");
    body["max_tokens"] = json!(10);
    let (status, said) = house.ask(&keys.api_key, &body).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let view = house.gateway.find(&keys.session).unwrap().view();
    assert_eq!(view.turns[0].versions, [(3, 4), (4, 6)]);
}

#[tokio::test]
async fn an_engine_that_fails_is_said_so_and_the_session_goes_on() {
    let house = House::new(EngineSettings { fail_next: 2, ..EngineSettings::default() }).await;
    let keys = house.open(json!({})).await;
    let (status, said) = house.ask(&keys.api_key, &chat("Go")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{said}");
    assert!(said["error"]["message"].as_str().unwrap().contains("500"), "{said}");
    let live = house.gateway.find(&keys.session).unwrap();
    assert_eq!((live.row().facts.failures, live.row().turns), (1, 0));
    let (status, _) = house.ask(&keys.api_key, &chat("Go")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn nobody_hears_the_end_of_a_turn_that_is_not_written() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    house.journal.is_broken.store(true, Ordering::Relaxed);
    let (status, said) = house.ask(&keys.api_key, &chat("Go")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(said["error"]["message"].as_str().unwrap().contains("the disk is full"), "{said}");
    let facts = house.gateway.find(&keys.session).unwrap().row().facts;
    assert_eq!((facts.running, facts.failures), (0, 1));
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_name_and_changes_nothing() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({"budget": {"turns": 2}})).await;
    let long = "the ".repeat(3000);
    let cases: Vec<(Value, u16, &str)> = vec![
        (
            json!({"model": "gpt", "messages": [{"role": "user", "content": "x"}]}),
            404,
            "model is \"gpt\", but the model here is called \"m\"",
        ),
        (chat(&long), 400, "too many"),
        (json!({"model": "m", "messages": []}), 400, "messages"),
        (json!({"model": "m"}), 400, "messages"),
        (json!([1]), 400, "object"),
        (
            json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
            400,
            "messages[0].content[0]",
        ),
    ];
    for (body, status, expected) in cases {
        let (found, said) = house.ask(&keys.api_key, &body).await;
        assert_eq!(found.as_u16(), status, "{said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    let live = house.gateway.find(&keys.session).unwrap();
    assert_eq!(live.row().turns, 0);
    for turn in 0..2 {
        assert_eq!(house.ask(&keys.api_key, &chat(&format!("{turn}"))).await.0, StatusCode::OK);
    }
    let (status, said) = house.ask(&keys.api_key, &chat("more")).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(said["error"]["message"].as_str().unwrap().contains("budget of 2 turns"), "{said}");
    until(|| live.row().facts.running == 0).await;
}
