//! Engines that only speak text: the message is kept as it came, and nothing is called exact.

use rollyard_engine::clients::Dialect;
use rollyard_engine::generate::{Engine, EngineError, Prompt, StopReason};
use rollyard_test_engine::{Dialects, Settings};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{chat_request, client, request, start};

#[tokio::test]
async fn every_dialect_answers_messages_with_a_message() {
    let server = start(Settings { answers: vec!["four".into()], ..Settings::default() }).await;
    for dialect in Dialect::ALL {
        let asked = chat_request(&[json!({"role": "user", "content": "2 + 2?"})]);
        let response = client(dialect, &[&server]).generate(asked).await.unwrap();
        let message: Value = serde_json::from_str(response.message.unwrap().get()).unwrap();
        assert_eq!(message, json!({"role": "assistant", "content": "four"}), "{dialect}");
        assert_eq!(response.text.as_deref(), Some("four"));
        assert_eq!(response.stop_reason, StopReason::Stop);
        assert!(
            !response.is_exact && response.output_tokens.is_empty() && response.output_logprobs.is_empty()
        );
    }
}

#[tokio::test]
async fn tool_calls_are_kept_as_the_engine_wrote_them() {
    let call = json!({"tool_calls": [{
        "id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2, \"b\": 2}"},
    }]});
    let settings = Settings {
        dialects: Dialects::Openai,
        answers: vec![call.clone(), "four".into()],
        ..Settings::default()
    };
    let server = start(settings).await;
    let engine = client(Dialect::Openai, &[&server]);
    let mut asked = chat_request(&[json!({"role": "user", "content": "2 + 2?"})]);
    let Prompt::Chat { tools, .. } = &mut asked.prompt else { unreachable!() };
    *tools = Some(to_raw_value(&json!([{"type": "function", "function": {"name": "add"}}])).unwrap());
    let first = engine.generate(asked.clone()).await.unwrap();
    assert_eq!(first.stop_reason, StopReason::ToolCalls);
    assert_eq!(first.text, None);
    let message = first.message.unwrap();
    let said: Value = serde_json::from_str(message.get()).unwrap();
    assert_eq!(said["tool_calls"], call["tool_calls"]);

    let Prompt::Chat { messages, .. } = &mut asked.prompt else { unreachable!() };
    messages.push(message);
    messages.push(to_raw_value(&json!({"role": "tool", "tool_call_id": "call_1", "content": "4"})).unwrap());
    assert_eq!(engine.generate(asked).await.unwrap().text.as_deref(), Some("four"));
}

#[tokio::test]
async fn an_interrupted_message_is_asked_for_anew_and_has_the_version_of_the_last() {
    let settings =
        Settings { answers: vec!["whole".into()], abort_next: vec![0, 3], version: 4, ..Settings::default() };
    let server = start(Settings { version_grows_with_aborts: true, ..settings }).await;
    let engine = client(Dialect::Sglang, &[&server]);
    let asked = chat_request(&[json!({"role": "user", "content": "hello"})]);
    let response = engine.generate(asked).await.unwrap();
    assert_eq!(response.text.as_deref(), Some("whole"));
    assert_eq!(response.segments[0].version, 6);
    assert_eq!(server.counters().requests, 3);
}

#[tokio::test]
async fn token_ids_are_not_sent_to_an_engine_that_only_speaks_text() {
    let server = start(Settings { dialects: Dialects::Openai, ..Settings::default() }).await;
    let engine = client(Dialect::Openai, &[&server]);
    assert!(!engine.capabilities().token_ids);
    let error = engine.generate(request(&[1, 2], 8)).await.unwrap_err();
    assert!(matches!(error, EngineError::NotExact { .. }), "{error}");
    assert_eq!(server.counters().requests, 0);
}
