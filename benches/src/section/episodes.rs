//! Episodes per second of the executor with a built-in workflow, what it adds to one call of an engine, and what
//! prompts that wait take. `benches/python/workflows.py` starts the engine, runs this, and has the baseline.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::{Data, SharedWorkflow};
use rollyard_engine::executor::{Executor, ExecutorConfig, Pace, Task};
use rollyard_engine::generate::{Engine as _, GenerationConfig, ModelRequest, Prompt};
use rollyard_engine::reward::reward_fn;
use rollyard_engine::workflow::SingleTurn;
use serde_json::json;
use tokio::runtime::{Handle, Runtime};

use crate::http::Client;
use crate::section::memory::resident_bytes;
use crate::table::median;

#[derive(Debug, Args)]
pub(crate) struct Episodes {
    what: What,
    /// Where the engine listens.
    #[arg(long)]
    url: String,
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    #[arg(long, default_value_t = 5_000)]
    concurrency: u32,
    #[arg(long, default_value_t = 128)]
    prompt_tokens: usize,
    #[arg(long, default_value_t = 64)]
    new_tokens: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Episodes, many at once.
    Rate,
    /// One call after the other: through the client, and as bare bytes.
    Overhead,
    /// Prompts that are submitted and wait.
    Waiting,
}

/// Prints one JSON object for the driver.
pub(crate) fn run(asked: &Episodes) -> Result<()> {
    let runtime = Runtime::new()?;
    let answer = match asked.what {
        What::Rate => runtime.block_on(asked.rate())?,
        What::Overhead => asked.overhead(&runtime)?,
        What::Waiting => runtime.block_on(asked.waiting())?,
    };
    println!("{answer}");
    Ok(())
}

impl Episodes {
    fn prompt(&self, nth: u64) -> Vec<i32> {
        (0..self.prompt_tokens).map(|place| ((nth as usize * 31 + place * 7) % 30_000 + 1) as i32).collect()
    }

    fn gconfig(&self) -> GenerationConfig {
        GenerationConfig { max_new_tokens: self.new_tokens, ..GenerationConfig::default() }
    }

    fn tasks(&self) -> Result<Vec<Task>> {
        let reward =
            reward_fn("even", |judged| judged.completion_ids.iter().filter(|id| *id % 2 == 0).count() as f64);
        let workflow: SharedWorkflow = Arc::new(SingleTurn::new(None, self.gconfig(), reward));
        let task = |nth| {
            Ok(Task {
                id: None,
                data: Arc::new(Data::parse(&json!({"input_ids": self.prompt(nth)}).to_string())?),
                workflow: Arc::clone(&workflow),
                group_size: NonZeroU32::MIN,
                accept: None,
                is_eval: false,
            })
        };
        (0..self.count).map(task).collect()
    }

    fn executor(&self) -> Result<Executor> {
        let engine = Arc::new(HttpEngine::new(EngineConfig::of(Dialect::Sglang, &self.url))?);
        let max_concurrent = NonZeroU32::new(self.concurrency).context("--concurrency is 0")?;
        let pace = Pace { max_concurrent, batch: NonZeroU32::MIN, max_head_offpolicyness: None };
        Ok(Executor::new(engine, ExecutorConfig::new(pace), Vec::new(), Handle::current()))
    }

    async fn rate(&self) -> Result<serde_json::Value> {
        let executor = self.executor()?;
        let tasks = self.tasks()?;
        let begun = Instant::now();
        let done = executor.rollout_batch(tasks, None).await?;
        let secs = begun.elapsed().as_secs_f64();
        let tokens: usize = done.iter().map(|finished| finished.output_tokens()).sum();
        ensure!(done.len() as u64 == self.count && tokens as u64 == self.count * u64::from(self.new_tokens));
        Ok(json!({"episodes_per_sec": self.count as f64 / secs}))
    }

    fn overhead(&self, runtime: &Runtime) -> Result<serde_json::Value> {
        let engine = HttpEngine::new(EngineConfig::of(Dialect::Sglang, &self.url))?;
        let address = self.url.trim_start_matches("http://").parse().context("--url is no address")?;
        let mut bare = Client::connect(address)?;
        let params = json!({"max_new_tokens": self.new_tokens});
        let (mut ours, mut bytes) = (Vec::new(), Vec::new());
        for nth in 0..self.count {
            let prompt = self.prompt(nth);
            let body =
                json!({"input_ids": prompt, "sampling_params": params, "return_logprob": true}).to_string();
            let begun = Instant::now();
            bare.call("POST", "/generate", &body)?;
            bytes.push(begun.elapsed().as_secs_f64());
            let request = ModelRequest {
                rid: String::new(),
                prompt: Prompt::Tokens(prompt),
                gconfig: self.gconfig(),
                session: None,
                metadata: serde_json::Map::new(),
            };
            let begun = Instant::now();
            runtime.block_on(engine.generate(request))?;
            ours.push(begun.elapsed().as_secs_f64());
        }
        Ok(json!({"ours_us": median(&ours) * 1e6, "bare_us": median(&bytes) * 1e6}))
    }

    async fn waiting(&self) -> Result<serde_json::Value> {
        let before = resident_bytes()?;
        let executor = self.executor()?;
        executor.pause();
        executor.submit_all(self.tasks()?)?;
        ensure!(executor.stats().counts.enqueued == self.count);
        let submitted = resident_bytes()?.saturating_sub(before);
        executor.resume();
        let begun = Instant::now();
        let counts = executor.idle().await?;
        ensure!(counts.accepted == self.count);
        let secs = begun.elapsed().as_secs_f64();
        let done = resident_bytes()?.saturating_sub(before);
        Ok(json!({"submitted_bytes": submitted, "done_bytes": done, "secs": secs}))
    }
}
