//! `rollyard-test-engine`: the test engine as a program, for tests in other languages and for benches.

use anyhow::{Context, Result};
use clap::Parser;
use rollyard_test_engine::{Dialects, Settings, TestEngine};
use std::io::{self, Write};
use std::net::SocketAddr;

/// An engine without a model, which speaks like SGLang, vLLM and OpenAI and misbehaves on command
#[derive(Debug, Parser)]
#[command(after_help = "\
The first line on stdout is the address. POST /control with any of its settings as a JSON object changes how
it behaves; GET /control shows them with its counters.

Example:
    rollyard-test-engine --dialect sglang --set '{\"stop_one_in\": 200, \"latency_ms\": 5}'")]
struct Arguments {
    /// Speak only this: sglang, vllm, openai or all
    #[arg(long, default_value = "all", value_parser = dialects)]
    dialect: Dialects,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Settings as a JSON object, as for POST /control
    #[arg(long, value_name = "JSON", default_value = "{}")]
    set: String,
    /// What the assistant says in its first, second, … message; can be given again
    #[arg(long = "answer", value_name = "TEXT")]
    answers: Vec<String>,
}

fn dialects(text: &str) -> Result<Dialects, String> {
    serde_json::from_value(text.into()).map_err(|_| "not one of sglang, vllm, openai, all".into())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let changed = Settings::default().changed(arguments.set.as_bytes());
    let mut settings = changed.map_err(anyhow::Error::msg).context("--set")?;
    settings.dialects = arguments.dialect;
    settings.answers.extend(arguments.answers.into_iter().map(Into::into));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = TestEngine::listen(arguments.listen, settings).await.context(arguments.listen)?;
        writeln!(io::stdout(), "{}", engine.url())?;
        io::stdout().flush()?;
        engine.join().await;
        Ok(())
    })
}
