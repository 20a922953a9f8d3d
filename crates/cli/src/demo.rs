//! `rollyard demo`: see it work.
//!
//! By itself it is [`learn`]: a small policy is trained by RL through every part, in one process. [`sweep`] does so
//! several times with other bounds on staleness, and [`yard`] puts a server alone through its paces.

mod chart;
mod learn;
mod sweep;
mod yard;

use anyhow::Result;
use clap::{Args, Subcommand};

/// See it work: a small policy learns by RL, through every part and before your eyes
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Needs nothing but this program: no GPU, no other server, no download. Ctrl-C stops it between two steps, and the same
command with --out goes on from there. Ends with code 1 if a promise was broken.

Example:
    rollyard demo --steps 150 --seed 7 --out my-run

Killed half-way with -9, and resumed:
    rollyard demo --crash"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    learn: learn::Arguments,
}

#[derive(Debug, Subcommand)]
enum Other {
    Sweep(sweep::Arguments),
    Yard(yard::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.other {
        None => learn::run(&arguments.learn),
        Some(Other::Sweep(arguments)) => sweep::run(arguments),
        Some(Other::Yard(arguments)) => yard::run(arguments),
    }
}
