//! One question, one answer, one reward, in groups: the shortest way from an engine to rollouts in Rust.
//!
//! ```text
//! cargo run -p rollyard-engine --example single_turn -- http://127.0.0.1:30000 models/Qwen2.5-0.5B-Instruct
//! ```
//!
//! The first argument is an SGLang server, the second the folder of the model that it serves: prompts are
//! rendered and tokenised here, so that what was sampled is known to the token.

use anyhow::{Context, Result};
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::Data;
use rollyard_engine::executor::{Executor, ExecutorConfig, Finished, Pace, Task};
use rollyard_engine::generate::{GenerationConfig, SharedEngine};
use rollyard_engine::reward::{Judged, reward_fn};
use rollyard_engine::workflow::SingleTurn;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;

const PROMPTS: [&str; 4] = [
    r#"{"prompt": "What is 7 times 8?", "answer": "56"}"#,
    r#"{"prompt": "What is 12 plus 30?", "answer": "42"}"#,
    r#"{"prompt": "What is 9 squared?", "answer": "81"}"#,
    r#"{"prompt": "What is half of 30?", "answer": "15"}"#,
];
const GROUP_SIZE: NonZeroU32 = NonZeroU32::new(4).expect("4 is not 0");
const MAX_NEW_TOKENS: u32 = 64;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let engine = arguments.next().context("give the address of an SGLang server")?;
    let model = arguments.next().context("give the folder of the model that it serves")?;
    run(&engine, Path::new(&model), &mut io::stdout()).await
}

pub(crate) async fn run(engine: &str, model: &Path, out: &mut impl Write) -> Result<()> {
    let engine: SharedEngine = Arc::new(HttpEngine::new(EngineConfig::of(Dialect::Sglang, engine))?);
    let folder = rollyard_store::model_folder::read(model)?;
    let tokenizer = Arc::new(Tokenizer::new(&folder.tokenizer, folder.files())?);
    let gconfig = GenerationConfig { max_new_tokens: MAX_NEW_TOKENS, ..GenerationConfig::default() };
    let workflow = Arc::new(SingleTurn::new(Some(tokenizer), gconfig, reward_fn("right and short", score)));

    // The pace is that of a trainer who takes all prompts in one step and wants nothing older than its weights.
    let batch = NonZeroU32::try_from(u32::try_from(PROMPTS.len())?)?;
    let pace = Pace { max_concurrent: batch, batch, max_head_offpolicyness: Some(0) };
    let executor = Executor::new(engine, ExecutorConfig::new(pace), Vec::new(), Handle::current());
    for prompt in PROMPTS {
        executor.submit(Task {
            id: None,
            data: Arc::new(Data::parse(prompt)?),
            workflow: Arc::clone(&workflow) as _,
            group_size: GROUP_SIZE,
            accept: None,
            is_eval: false,
        })?;
    }
    // Without a time limit: if so many cannot come any more, that is an error at once, with the reasons.
    for group in executor.wait(PROMPTS.len(), None).await? {
        show(&group, out)?;
    }
    let counts = executor.stats().counts;
    writeln!(out, "{} accepted, {} rejected, {} failed", counts.accepted, counts.rejected, counts.failed)?;
    Ok(())
}

/// Right answers are worth 1; up to a tenth more goes to those that leave tokens unused.
fn score(judged: Judged<'_>) -> f64 {
    let truth = judged.data.get("answer").and_then(|answer| answer.as_str()).unwrap_or_default();
    let right = if judged.completion.contains(truth) { 1.0 } else { 0.0 };
    let used = judged.completion_ids.len() as f64 / f64::from(MAX_NEW_TOKENS);
    right + 0.1 * (1.0 - used)
}

/// A line for each group: what its members earned, and which weights sampled how many tokens.
fn show(group: &Finished, out: &mut impl Write) -> io::Result<()> {
    let rewards: Vec<String> = group.samples().map(|sample| format!("{:.2}", sample.reward)).collect();
    let (tokens, version) = (group.output_tokens(), group.head_version());
    writeln!(out, "task {}: rewards {}; {tokens} tokens, version {version}", group.id, rewards.join(" "))
}
