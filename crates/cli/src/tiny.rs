//! `rollyard tiny`: the small model, as a server and as files.

mod serve;
mod tokenizer;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Serve a small real model on this machine, in the place of an engine
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
    rollyard tiny serve --listen 127.0.0.1:30000")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Serve(serve::Arguments),
    Tokenizer(tokenizer::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Serve(arguments) => serve::run(arguments),
        What::Tokenizer(arguments) => tokenizer::run(arguments),
    }
}
