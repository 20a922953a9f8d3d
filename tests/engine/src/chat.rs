//! OpenAI's `/v1/chat/completions`: the n-th message of the assistant is the n-th line of a script.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::generate::{End, Question, generate};
use crate::http::{self, Answer, bad_request};
use crate::settings::Settings;

#[derive(Deserialize)]
struct Asked {
    messages: Vec<Value>,
    seed: Option<u64>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
}

pub(crate) async fn answer(engine: &Engine, settings: &Settings, body: &Bytes) -> Answer {
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return bad_request(&error.to_string()),
    };
    let turn =
        asked.messages.iter().filter(|message| message.get("role") == Some(&"assistant".into())).count();
    let prompt: Vec<i32> = asked.messages.iter().flat_map(|message| bytes_of(&message.to_string())).collect();
    let max = asked.max_completion_tokens.or(asked.max_tokens).unwrap_or(16).min(32);
    let question = Question {
        rid: "",
        prompt: &prompt,
        seed: asked.seed.unwrap_or(0),
        max,
        min: 0,
        stop_token_ids: &[],
    };
    let generation = generate(engine, settings, question).await;
    let scripted = settings.answers.get(turn).map(message);
    let message = scripted
        .clone()
        .unwrap_or_else(|| json!({"role": "assistant", "content": words(&generation.tokens)}));
    let finish_reason = match generation.end {
        End::Abort => "abort",
        _ if message.get("tool_calls").is_some() => "tool_calls",
        _ if scripted.is_some() => "stop",
        end => end.name(),
    };
    http::json(&json!({
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "model": settings.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": prompt.len(), "completion_tokens": generation.tokens.len()},
        "metadata": settings.gives_version.then(|| json!({"weight_version": generation.version.to_string()})),
    }))
}

fn message(line: &Value) -> Value {
    match line {
        Value::Object(_) => {
            let mut message = json!({"role": "assistant", "content": null});
            if let (Some(message), Some(line)) = (message.as_object_mut(), line.as_object()) {
                message.extend(line.clone());
            }
            message
        }
        Value::String(text) => json!({"role": "assistant", "content": text}),
        other => json!({"role": "assistant", "content": other.to_string()}),
    }
}

fn bytes_of(text: &str) -> Vec<i32> {
    text.bytes().map(i32::from).collect()
}

fn words(tokens: &[i32]) -> String {
    tokens.iter().map(|token| format!("w{token}")).collect::<Vec<_>>().join(" ")
}
