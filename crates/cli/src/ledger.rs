//! `rollyard ledger`: reads the log of a run and tells what happened.
//!
//! It takes no lock and writes nothing, so it works beside a running server: it sees what was durable when it
//! came by.

pub(crate) mod check;
mod events;
pub(crate) mod history;
mod rollout;
mod step;
mod tell;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;

use history::History;

/// Audit a run: what happened to a rollout, what trained at a step, do the books balance
#[derive(Debug, Args)]
#[command(after_help = "\
It reads the log only, so it works with and without a server.

Example:
    rollyard ledger --data ./yard-data check")]
pub(crate) struct Arguments {
    /// The server's data folder
    #[arg(long, value_name = "DIR", default_value = "./yard-data", env = "ROLLYARD_DATA", global = true)]
    data: PathBuf,
    /// The run to look into
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    run: String,
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Rollout(rollout::Arguments),
    Step(step::Arguments),
    Check(check::Arguments),
    Events(events::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let history = History::open(&arguments.data, &arguments.run)?;
    match &arguments.question {
        Question::Rollout(question) => rollout::run(&history, question),
        Question::Step(question) => step::run(&history, question),
        Question::Check(question) => check::run(&history, question),
        Question::Events(question) => events::run(&history, question),
    }
}
