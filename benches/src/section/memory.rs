//! What rollouts take in memory, against the bytes of their tokens and log-probs.
//!
//! Measured in a process of its own, because memory that another section gave back would be used again unseen.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rollyard_core::rollout::{Draft, Rollout};
use rollyard_core::wire::rollout::decode;
use serde_json::json;

use crate::rollouts::{Lengths, Random};
use crate::table::{Bar, Row, gigabytes};

const ROLLOUTS: usize = 100_000;
const PROMPT: usize = 500;
const RESPONSE: usize = 1_500;

/// How the rollouts come to be.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Origin {
    /// Made from arrays of their length.
    Arrays,
    /// Read from JSON, as a trainer gets them: what reading leaves behind counts too.
    Json,
}

pub(crate) fn run() -> Result<Vec<Row>> {
    let raw = (ROLLOUTS * (size_of::<i32>() * (PROMPT + RESPONSE) + size_of::<f32>() * RESPONSE)) as f64;
    let row = |name: &str, origin: &str| -> Result<Row> {
        let what = format!("memory of {ROLLOUTS} rollouts of {} tokens, {name}", PROMPT + RESPONSE);
        let grown = in_child(origin)? as f64;
        Ok(Row::ratio(&what, grown / 1e9, raw / 1e9, gigabytes, Bar::AtMost(1.15)))
    };
    Ok(vec![row("from arrays", "arrays")?, row("from JSON", "json")?])
}

fn in_child(origin: &str) -> Result<u64> {
    let output = Command::new(std::env::current_exe()?).args(["hold-rollouts", origin]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "holding rollouts failed: {}", String::from_utf8_lossy(&output.stderr));
    said.trim().parse().with_context(|| format!("the holder of rollouts said {said:?}"))
}

/// The bytes by which this process grows when it makes the rollouts and holds them.
pub(crate) fn hold(origin: Origin) -> Result<u64> {
    let lengths = Lengths::with_prompt(PROMPT, RESPONSE);
    let mut random = Random::new(9);
    let before = resident_bytes()?;
    let mut held: Vec<Rollout> = Vec::with_capacity(ROLLOUTS);
    for _ in 0..ROLLOUTS {
        let draft = lengths.draft(&mut random);
        held.push(match origin {
            Origin::Arrays => Rollout::try_from(draft)?,
            Origin::Json => decode(json_of(&draft).as_bytes())?,
        });
    }
    let grown = resident_bytes()?.saturating_sub(before);
    drop(std::hint::black_box(held));
    Ok(grown)
}

fn json_of(draft: &Draft) -> String {
    let loss_mask = draft.sampled.as_ref().map(|on| on.iter().map(|on| u8::from(*on)).collect::<Vec<_>>());
    let item = json!({
        "env_name": draft.env_name,
        "instance_id": draft.env_example_id,
        "tokens": draft.tokens,
        "response_length": RESPONSE,
        "loss_mask": loss_mask,
        "logprobs": draft.logprobs,
        "versions": draft.versions,
        "reward": draft.episode_reward,
        "worker_id": draft.metadata.worker_id,
        "weight_version": draft.metadata.weight_step,
    });
    item.to_string()
}

pub(crate) fn resident_bytes() -> Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).context("statm has no second field")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
