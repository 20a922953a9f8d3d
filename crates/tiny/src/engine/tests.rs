//! What is sampled is what the weights say, whoever else is there and whatever comes between.

mod interruption;
mod places;
mod stops;
mod truth;

use rollyard_engine::generate::GenerationConfig;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use super::*;
use crate::model::Shape;
use crate::tokenizer;

fn weights(context: usize, seed: u64) -> Arc<Weights> {
    let shape = Shape { context, ..Shape::demo(tokenizer::vocabulary_len()) };
    Arc::new(Weights::random(shape, seed))
}

fn engine(weights: &Arc<Weights>, settings: EngineSettings) -> TinyEngine {
    TinyEngine::start(Arc::clone(weights), 0, words(), settings).unwrap()
}

fn words() -> Arc<Tokenizer> {
    static WORDS: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| Arc::new(tokenizer::tokenizer().unwrap()));
    Arc::clone(&WORDS)
}

fn ids(text: &str) -> Vec<i32> {
    let ids = words().encoder().encode(text).unwrap();
    ids.into_iter().map(u32::cast_signed).collect()
}

/// Never ends by itself, so that tests know how long it is.
fn ask(prompt: &str, seed: u64, max_new_tokens: u32) -> Ask {
    let sampling = GenerationConfig { max_new_tokens, seed: Some(seed), ..GenerationConfig::default() };
    Ask { prompt: ids(prompt), sampling, ignore_eos: true, ..Ask::default() }
}

async fn until(engine: &TinyEngine, what: &str, holds: impl Fn(Stats) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds(engine.stats()) {
        assert!(Instant::now() < deadline, "not {what} within 20 s: {:?}", engine.stats());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
