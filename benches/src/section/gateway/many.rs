//! Many agents: requests a second against a pass-through, and five thousand sessions at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;

use super::stage::{Session, Stage};
use super::wire::Wire;
use crate::setup::Setup;
use crate::table::{Bar, Row, count, gigabytes, median, millis, per_sec};

const AGENTS: usize = 32;
const SESSIONS: usize = 5_000;

pub(super) async fn requests(stage: &Stage, setup: &Setup) -> Result<Vec<Row>> {
    let proxy = setup.start_proxy(&stage.engine.url())?;
    let mut wire = Wire::connect(stage.gateway.address()).await?;
    let mut keys = Vec::new();
    for _ in 0..AGENTS {
        keys.push(stage.open(&mut wire).await?.key);
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        ours.push(rate(stage.gateway.address(), &keys, setup.round()).await?);
        theirs.push(rate(proxy.address(), &keys, setup.round()).await?);
    }
    Ok(vec![Row::ratio(
        "requests a second, against FastAPI and httpx that record nothing",
        median(&ours),
        median(&theirs),
        per_sec,
        Bar::AtLeast(10.0),
    )])
}

/// Requests a second of all agents together.
async fn rate(address: SocketAddr, keys: &[String], round: Duration) -> Result<f64> {
    let began = Instant::now();
    let mut agents = JoinSet::new();
    for key in keys {
        let key = key.clone();
        agents.spawn(async move {
            let mut wire = Wire::connect(address).await?;
            let mut done = 0_u64;
            while began.elapsed() < round {
                let text = format!("What is {done} and one? {}", "the 12 ".repeat(8));
                let body =
                    json!({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 8});
                wire.call("POST", "/v1/chat/completions", &key, &body.to_string()).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut all = 0;
    while let Some(done) = agents.join_next().await {
        all += done??;
    }
    Ok(all as f64 / began.elapsed().as_secs_f64())
}

pub(super) async fn sessions(stage: &Stage) -> Result<Vec<Row>> {
    let sessions = open_many(stage).await?;
    ensure!(sessions.len() == SESSIONS, "{} sessions are open", sessions.len());
    // Long enough that the last has begun before the first ends.
    stage.engine.change(|settings| settings.latency_ms_per_token = 2_000.0);
    let address = stage.gateway.address();
    let began = Instant::now();
    let mut streams = JoinSet::new();
    for (at, session) in sessions.into_iter().enumerate() {
        streams.spawn(async move {
            tokio::time::sleep(Duration::from_micros(at as u64 * 400)).await;
            let mut wire = Wire::connect(address).await?;
            let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}], "max_tokens": 4, "stream": true});
            let asked = Instant::now();
            let answer = wire.call("POST", "/v1/chat/completions", &session.key, &body.to_string()).await?;
            let last = answer.chunks.last().map_or(Duration::ZERO, |last| last.arrived.duration_since(asked));
            let is_whole = answer.body.ends_with(b"data: [DONE]\n\n");
            anyhow::Ok((last.as_secs_f64() - 8.0, is_whole))
        });
    }
    let mut late = Vec::new();
    while let Some(stream) = streams.join_next().await {
        let (secs, is_whole) = stream??;
        ensure!(is_whole, "a stream was cut");
        late.push(secs);
    }
    let wall = began.elapsed();
    stage.engine.change(|settings| settings.latency_ms_per_token = 0.0);
    late.sort_by(f64::total_cmp);
    let p99 = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
    eprintln!("  all whole after {:.1} s", wall.as_secs_f64());
    Ok(vec![
        Row::value(
            "sessions that stream at once, all whole",
            late.len() as f64,
            count,
            Bar::AtLeast(SESSIONS as f64),
        ),
        Row::value("their ends, p99 behind the engine's clock", p99, millis, Bar::None),
        Row::value(
            "memory of the server then",
            stage.gateway.rss_bytes()? as f64 / 1e9,
            gigabytes,
            Bar::None,
        ),
    ])
}

async fn open_many(stage: &Stage) -> Result<Vec<Session>> {
    let mut openers = Vec::new();
    for _ in 0..AGENTS {
        openers.push(async {
            let mut wire = Wire::connect(stage.gateway.address()).await?;
            let mut opened = Vec::new();
            for _ in 0..SESSIONS.div_ceil(AGENTS) {
                opened.push(stage.open(&mut wire).await?);
            }
            anyhow::Ok(opened)
        });
    }
    let opened = futures_util::future::try_join_all(openers).await?;
    Ok(opened.into_iter().flatten().take(SESSIONS).collect())
}
