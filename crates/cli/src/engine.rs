//! `rollyard engine`: what an inference engine can do, before a run relies on it.

mod check;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Ask inference engines what they can do
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
    rollyard engine check http://10.0.0.7:30000")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Check(check::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.question {
        Question::Check(question) => check::run(question),
    }
}
