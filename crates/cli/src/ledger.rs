//! `rollyard ledger`: reads the log of a run and tells what happened.
//!
//! Its questions take no lock and write nothing, so they work beside a running server: they see what was durable when
//! they came by. [`copy`] alone writes, and wants peace.

pub(crate) mod check;
mod copy;
mod events;
pub(crate) mod history;
mod place;
mod rollout;
mod step;
mod tell;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use std::path::PathBuf;

use history::History;
use place::{LogArguments, Place};

/// The run that is looked into if none is named.
const RUN: &str = "default";

/// Audit a run: what happened to a rollout, what trained at a step, do the books balance; or copy it elsewhere
#[derive(Debug, Args)]
#[command(after_help = "\
All but `copy` read the log only, so they work with and without a server.

Example:
    rollyard ledger --data ./yard-data check
    rollyard ledger --log nats://127.0.0.1:4222 check")]
pub(crate) struct Arguments {
    /// The server's data folder
    #[arg(long, value_name = "DIR", default_value = "./yard-data", env = "ROLLYARD_DATA", global = true)]
    data: PathBuf,
    /// NATS servers that keep the run, like nats://host:4222, instead of the data folder
    #[arg(long, value_name = "URL", global = true)]
    log: Option<String>,
    #[command(flatten)]
    log_arguments: LogArguments,
    /// The run to look into: `default` if left out, and all of them for `copy`
    #[arg(long, value_name = "NAME", global = true)]
    run: Option<String>,
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Rollout(rollout::Arguments),
    Step(step::Arguments),
    Check(check::Arguments),
    Events(events::Arguments),
    Copy(copy::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let history = || open(arguments);
    match &arguments.question {
        Question::Rollout(question) => rollout::run(&history()?, question),
        Question::Step(question) => step::run(&history()?, question),
        Question::Check(question) => check::run(&history()?, question),
        Question::Events(question) => events::run(&history()?, question),
        Question::Copy(_) if arguments.log.is_some() => {
            bail!("copy takes its places by --from and --to; leave --log out")
        }
        Question::Copy(question) => copy::run(question, &arguments.log_arguments, arguments.run.as_deref()),
    }
}

fn open(arguments: &Arguments) -> Result<History> {
    let run = arguments.run.as_deref().unwrap_or(RUN);
    let Some(servers) = &arguments.log else { return History::open(&arguments.data, run) };
    match Place::parse(servers)? {
        Place::Servers(servers) => History::follow(arguments.log_arguments.connect(&servers, 1)?, run),
        Place::Folder(folder) => {
            bail!(
                "--log {} is no NATS server; write nats://host:4222, or --data for a folder",
                folder.display()
            )
        }
    }
}
