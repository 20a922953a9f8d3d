//! Clients against an engine that speaks as the real ones do.

mod answers;
mod chat;
mod fleet;
mod interruption;
mod pause;
mod streaming;

use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::generate::{GenerationConfig, ModelRequest, ModelResponse, Prompt};
use rollyard_test_engine::{Settings, TestEngine, model};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

const VOCABULARY: i32 = 32_000;

async fn start(settings: Settings) -> TestEngine {
    TestEngine::start(Settings { vocabulary: VOCABULARY, ..settings }).await.unwrap()
}

/// Of these servers, and quick to try again.
fn config(dialect: Dialect, servers: &[&TestEngine]) -> EngineConfig {
    EngineConfig {
        dialect,
        urls: servers.iter().map(|server| server.url()).collect(),
        backoff_secs: 0.001,
        backoff_max_secs: 0.01,
        ..EngineConfig::default()
    }
}

fn client(dialect: Dialect, servers: &[&TestEngine]) -> HttpEngine {
    HttpEngine::new(config(dialect, servers)).unwrap()
}

fn request(prompt: &[i32], max_new_tokens: u32) -> ModelRequest {
    ModelRequest {
        rid: String::new(),
        prompt: Prompt::Tokens(prompt.to_vec()),
        gconfig: GenerationConfig { max_new_tokens, ..GenerationConfig::default() },
        session: None,
        metadata: Map::new(),
    }
}

fn chat_request(messages: &[Value]) -> ModelRequest {
    let messages = messages.iter().map(|message| to_raw_value(message).unwrap()).collect();
    ModelRequest { prompt: Prompt::Chat { messages, tools: None }, ..request(&[], 16) }
}

/// What comes of a prompt that nobody interrupts and nothing stops.
fn uninterrupted(prompt: &[i32], count: usize) -> Vec<i32> {
    model::continuation(prompt, 0, VOCABULARY, 0, count)
}

/// The version of each token.
fn versions(response: &ModelResponse) -> Vec<i32> {
    let versions: Vec<i32> =
        response.segments.iter().flat_map(|segment| vec![segment.version; segment.tokens]).collect();
    assert_eq!(versions.len(), response.output_tokens.len());
    versions
}

fn assert_paired(response: &ModelResponse, versions: &[i32]) {
    let expected = response.output_tokens.iter().zip(versions);
    let expected: Vec<f32> = expected.map(|(token, version)| model::logprob(*token, *version)).collect();
    assert_eq!(response.output_logprobs, expected);
}

/// Waits until it is so, which must be soon.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "never came to be: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
