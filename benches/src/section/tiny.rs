//! Tokens a second that the demo's model samples: many texts at once, against one after the other.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rollyard_engine::generate::GenerationConfig;
use rollyard_tiny::engine::{Ask, EngineSettings, TinyEngine};
use rollyard_tiny::model::{Shape, Weights};
use rollyard_tiny::tokenizer;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::table::{Bar, Row, median};

/// Texts at once, as in a demo that may be two versions ahead.
const TEXTS: u64 = 512;
const ROUNDS: usize = 5;
/// As long as the answers of the task with a tool, and longer.
const NEW_TOKENS: u32 = 32;

pub(crate) fn run() -> Result<Vec<Row>> {
    let tokenizer = Arc::new(tokenizer::tokenizer()?);
    let shape = Shape::demo(tokenizer::vocabulary_len());
    let weights = Arc::new(Weights::random(shape, 1));
    let settings = EngineSettings { texts_max: 256, seed: Some(1), ..EngineSettings::default() };
    let engine = TinyEngine::start(weights, 0, tokenizer, settings)?;
    let runtime = Runtime::new()?;
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        eprintln!("  round {} of {ROUNDS}", round + 1);
        together.push(runtime.block_on(rate(&engine, TEXTS, TEXTS))?);
        alone.push(runtime.block_on(rate(&engine, TEXTS / 8, 1))?);
    }
    let (together, alone) = (median(&together), median(&alone));
    Ok(vec![
        Row::value(
            "tokens sampled a second, 256 texts at once",
            together,
            tokens_per_sec,
            Bar::AtLeast(20_000.0),
        ),
        Row::ratio(
            "the same, against one text after the other",
            together,
            alone,
            tokens_per_sec,
            Bar::AtLeast(2.0),
        ),
    ])
}

fn tokens_per_sec(value: f64) -> String {
    format!("{value:.0} tokens/s")
}

/// Of so many texts, of which so many are asked for at a time.
async fn rate(engine: &TinyEngine, texts: u64, at_a_time: u64) -> Result<f64> {
    let began = Instant::now();
    let mut tokens = 0;
    for first in (0..texts).step_by(usize::try_from(at_a_time)?) {
        let mut asked = JoinSet::new();
        for seed in first..first + at_a_time {
            let engine = engine.clone();
            asked.spawn(async move { engine.ask(ask(&engine, seed)).await });
        }
        while let Some(answer) = asked.join_next().await {
            tokens += answer?.context("the engine failed")?.tokens.len();
        }
    }
    Ok(tokens as f64 / began.elapsed().as_secs_f64())
}

fn ask(engine: &TinyEngine, seed: u64) -> Ask {
    let text = format!("<|user|>{}+{}<|end|><|assistant|>", 10 + seed % 90, 10 + seed * 7 % 90);
    let ids = engine.tokenizer().encoder().encode(&text).unwrap_or_default();
    let sampling =
        GenerationConfig { max_new_tokens: NEW_TOKENS, seed: Some(seed), ..GenerationConfig::default() };
    Ask {
        prompt: ids.into_iter().map(u32::cast_signed).collect(),
        sampling,
        ignore_eos: true,
        ..Ask::default()
    }
}
