//! Two hundred turns of one session: is the last as cheap as the first, and what does it take?

use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::stage::Stage;
use super::wire::Wire;
use crate::table::{Bar, Row, median, millis};

const TURNS: usize = 200;
/// Given and sampled in each turn: 500 together.
const TOKENS: u32 = 250;
const COMPARED: usize = 20;

pub(super) async fn run(stage: &Stage) -> Result<Vec<Row>> {
    stage.engine.change(|settings| settings.records = true);
    let mut agent = Wire::connect(stage.gateway.address()).await?;
    let mut engine = Wire::connect(stage.engine_address()).await?;
    let session = stage.open(&mut agent).await?;
    let mut messages: Vec<Value> = Vec::new();
    let mut added = Vec::new();
    for turn in 0..TURNS {
        messages.push(json!({"role": "user", "content": format!("{turn} {}", "the 12 ".repeat(61))}));
        let body =
            json!({"model": "m", "messages": messages, "max_tokens": TOKENS, "stream": true}).to_string();
        let began = Instant::now();
        let answer = agent.call("POST", "/v1/chat/completions", &session.key, &body).await?;
        let through = began.elapsed();
        let said = answer.events().filter_map(|(_, event)| serde_json::from_str::<Value>(event).ok());
        let text = |event: Value| {
            event.pointer("/choices/0/delta/content").and_then(Value::as_str).map(str::to_owned)
        };
        let content: String = said.filter_map(text).collect();
        messages.push(json!({"role": "assistant", "content": content}));
        let prompt = stage.engine.recorded().pop().context("the engine was not asked")?;
        let body = json!({"input_ids": prompt, "sampling_params": {"max_new_tokens": TOKENS}, "return_logprob": true, "stream": true});
        let body = body.to_string();
        let began = Instant::now();
        engine.call("POST", "/generate", "", &body).await?;
        added.push(through.as_secs_f64() - began.elapsed().as_secs_f64());
    }
    stage.engine.change(|settings| settings.records = false);
    let path = format!("/api/sessions/{}", session.id);
    let view = agent.call("GET", &path, "", "").await?;
    let view: Value = serde_json::from_slice(&view.body)?;
    let bytes = view.get("size_bytes").and_then(Value::as_f64).context("no size")?;
    let last = view
        .pointer(&format!("/turns/{}/prompt_tokens", TURNS - 1))
        .and_then(Value::as_f64)
        .unwrap_or_default();
    let first = median(added.get(..COMPARED).unwrap_or_default());
    let end = median(added.get(TURNS - COMPARED..).unwrap_or_default());
    Ok(vec![
        Row::ratio(
            "what a turn costs, the last 20 of 200 against the first 20",
            end,
            first,
            millis,
            Bar::AtMost(2.0),
        ),
        Row::value("tokens of the last prompt", last, |value| format!("{value:.0}"), Bar::None),
        Row::value(
            "memory of the session",
            bytes / 1e6,
            |value| format!("{value:.2} MB"),
            Bar::Below { limit: 3.0, unit: "MB" },
        ),
    ])
}
