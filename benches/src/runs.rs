//! Files as a training run leaves them, made up: the same bytes for the same seed, as fast as the disk takes them.
//!
//! Rows are in the viewer's format, eight to a group, with thoughts of very different lengths, some never closed,
//! some text beyond ASCII, now and then a call of a tool, and rewards that get better with the steps.

use anyhow::{Context, Result};
use clap::Args;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What to write.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[arg(long)]
    rows: u64,
    #[arg(long)]
    row_bytes: usize,
    #[arg(long)]
    out: PathBuf,
}

impl Runs {
    pub(crate) fn write(&self) -> Result<()> {
        generate(&self.out, self.rows, self.row_bytes, 7).map(drop)
    }
}

/// Stands in one row of two thousand, for searches.
const NEEDLE: &str = "zephyr-quartz-7";

const GROUP: u64 = 8;
const GROUPS_A_STEP: u64 = 64;
const WORDS: [&str; 24] = [
    "the",
    "sum",
    "of",
    "both",
    "sides",
    "is",
    "therefore",
    "we",
    "check",
    "again",
    "whether",
    "x",
    "equals",
    "forty-two",
    "\\\"quoted\\\"",
    "naïve",
    "über",
    "数",
    "because",
    "\\n\\n",
    "so",
    "wait,",
    "let",
    "me",
];

/// A small generator: what it makes must be the same everywhere and cost nothing.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((self.next() >> 32) * limit) >> 32
    }
}

/// Writes `rows` rows of about `row_bytes` each, and gives the size of the file.
fn generate(path: &Path, rows: u64, row_bytes: usize, seed: u64) -> Result<u64> {
    let file = File::create(path).with_context(|| format!("cannot create the file: {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut dice = Dice(seed);
    let (mut line, mut bytes) = (String::with_capacity(2 * row_bytes), 0);
    for row in 0..rows {
        line.clear();
        one(&mut line, row, row_bytes, &mut dice)?;
        out.write_all(line.as_bytes())?;
        bytes += line.len() as u64;
    }
    out.flush()?;
    Ok(bytes)
}

fn one(line: &mut String, row: u64, row_bytes: usize, dice: &mut Dice) -> Result<()> {
    let (group, step) = (row / GROUP, row / (GROUP * GROUPS_A_STEP));
    // Steps come back to the same prompts.
    let prompt = group % (GROUPS_A_STEP * 16);
    write!(
        line,
        r#"{{"messages": [{{"role": "system", "content": "You solve problems."}}, {{"role": "user", "content": "Problem {prompt}: what is {prompt} plus {}?"}}, {{"role": "assistant", "content": "<think>\n"#,
        prompt * 7
    )?;
    // Half to one and a half times the size that was asked for.
    let target = row_bytes / 2 + dice.below(row_bytes as u64) as usize;
    while line.len() + 300 < target {
        let mut many = dice.next();
        for _ in 0..12 {
            line.push_str(WORDS.get((many % 24) as usize).copied().unwrap_or_default());
            line.push(' ');
            many /= 24;
        }
        line.push_str(if dice.below(4) == 0 { ".\\n" } else { ", " });
    }
    if dice.below(2000) == 0 {
        line.push_str(NEEDLE);
    }
    if dice.below(100) >= 5 {
        write!(line, "</think>\\n\\nThe answer is {}.", prompt * 8)?;
    }
    let passes = dice.below(1000) < 200 + step.min(600);
    let reward = if passes { 1.0 } else { dice.below(500) as f64 / 1000.0 };
    let source =
        ["math/sums", "coding/tests", "maze/steps"].get((prompt % 3) as usize).copied().unwrap_or("math");
    writeln!(
        line,
        r#""}}], "attributes": {{"sample_index": {}, "step": {step}, "rollout_n": {row}, "reward": {reward:?}, "data_source": "{source}", "experiment_name": "bench", "validate": false, "stop_reason": "{}", "entropy": 0.{}}}, "timestamp": "2026-01-16T11:{:02}:{:02}.744140"}}"#,
        row % GROUP,
        if dice.below(20) == 0 { "length" } else { "stop" },
        dice.below(1000),
        row / 60 % 60,
        row % 60
    )?;
    Ok(())
}
