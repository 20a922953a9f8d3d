//! What the gateway adds to every token of 500 streams.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::stage::Stage;
use super::wire::Wire;
use crate::table::{Bar, Row, median, millis};

const STREAMS: usize = 500;
const TOKENS: u32 = 40;
/// Ten and twenty tokens a second for each: five and ten thousand in all.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(50)];

/// How late tokens were, in seconds.
struct Lateness {
    median: f64,
    p99: f64,
}

pub(super) async fn run(stage: &Stage, rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for interval in INTERVALS {
        rows.extend(at_pace(stage, rounds, interval).await?);
    }
    Ok(rows)
}

async fn at_pace(stage: &Stage, rounds: u32, interval: Duration) -> Result<Vec<Row>> {
    stage.engine.change(|settings| settings.latency_ms_per_token = interval.as_secs_f64() * 1e3);
    let mut wire = Wire::connect(stage.gateway.address()).await?;
    let mut keys = Vec::new();
    for _ in 0..STREAMS {
        keys.push(stage.open(&mut wire).await?.key);
    }
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let prompt: Vec<i32> = (1..200).collect();
        let question = json!({"input_ids": prompt, "sampling_params": {"max_new_tokens": TOKENS}, "return_logprob": true, "stream": true});
        direct.push(
            lateness(stage.engine_address(), "/generate", &[String::new()], &question.to_string(), interval)
                .await?,
        );
        let text = format!("{round} {}", "the 12 ".repeat(28));
        let question = json!({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": TOKENS, "stream": true});
        through.push(
            lateness(stage.gateway.address(), "/v1/chat/completions", &keys, &question.to_string(), interval)
                .await?,
        );
    }
    stage.engine.change(|settings| settings.latency_ms_per_token = 0.0);
    let of = |rounds: &[Lateness], value: fn(&Lateness) -> f64| {
        median(&rounds.iter().map(value).collect::<Vec<_>>())
    };
    let pace = 1.0 / interval.as_secs_f64();
    let added = |value: fn(&Lateness) -> f64| of(&through, value) - of(&direct, value);
    Ok(vec![
        Row::value(
            &format!("added to a token, median, 500 streams of {pace} tokens/s"),
            added(|one| one.median),
            millis,
            Bar::Below { limit: 0.001, unit: "s" },
        ),
        Row::value(
            &format!("added to a token, p99, 500 streams of {pace} tokens/s"),
            added(|one| one.p99),
            millis,
            Bar::Below { limit: 0.005, unit: "s" },
        ),
        Row::value(
            &format!("the engine alone, median lateness, {pace} tokens/s"),
            of(&direct, |one| one.median),
            millis,
            Bar::None,
        ),
        Row::value(
            &format!("the engine alone, p99 lateness, {pace} tokens/s"),
            of(&direct, |one| one.p99),
            millis,
            Bar::None,
        ),
    ])
}

/// Of each token of all streams, against the clock of the engine.
async fn lateness(
    address: SocketAddr,
    path: &'static str,
    keys: &[String],
    body: &str,
    interval: Duration,
) -> Result<Lateness> {
    let mut streams = JoinSet::new();
    for at in 0..STREAMS {
        let key = keys.get(at % keys.len()).cloned().unwrap_or_default();
        let body = body.to_owned();
        streams.spawn(async move {
            let mut wire = Wire::connect(address).await?;
            // Agents do not begin at the same moment.
            tokio::time::sleep(interval.mul_f64(at as f64 / STREAMS as f64)).await;
            let began = Instant::now();
            let answer = wire.call("POST", path, &key, &body).await?;
            let tokens =
                answer.events().flat_map(|(arrived, event)| std::iter::repeat_n(arrived, tokens_of(event)));
            anyhow::Ok((began, tokens.collect::<Vec<Instant>>()))
        });
    }
    let mut late = Vec::new();
    while let Some(stream) = streams.join_next().await {
        let (began, tokens) = stream??;
        ensure!(tokens.len() == TOKENS as usize, "{} tokens came, not {TOKENS}", tokens.len());
        for (number, arrived) in (1..).zip(tokens) {
            late.push(arrived.duration_since(began).as_secs_f64() - (interval * number).as_secs_f64());
        }
    }
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late.get(((late.len() - 1) as f64 * share) as usize).copied().unwrap_or_default();
    Ok(Lateness { median: at(0.5), p99: at(0.99) })
}

/// Of an event of either dialect. Every token that the engine is let sample is one character.
fn tokens_of(event: &str) -> usize {
    let Ok(event) = serde_json::from_str::<Value>(event) else { return 0 };
    let ids = event.get("output_ids").and_then(Value::as_array).map(Vec::len);
    let text = event.pointer("/choices/0/delta/content").and_then(Value::as_str);
    ids.or_else(|| text.map(|text| text.chars().count())).unwrap_or(0)
}
