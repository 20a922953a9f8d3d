//! `rollyard tiny tokenizer`: the small model's tokenizer, for commands that ask for a model's folder.

use anyhow::{Context, Result};
use clap::Args;
use rollyard_tiny::tokenizer;
use std::io::{self, Write};
use std::path::PathBuf;

/// Write the tokenizer and the chat template of the small model
#[derive(Debug, Args)]
#[command(after_help = "\
The folder is for the flags --model and --tokenizer of other commands.

Example:
    rollyard tiny tokenizer ./tiny-model")]
pub(crate) struct Arguments {
    /// Folder to put them in; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let dir = &arguments.dir;
    tokenizer::write(dir).with_context(|| format!("cannot write the tokenizer to {}", dir.display()))?;
    writeln!(io::stdout(), "wrote tokenizer.json and tokenizer_config.json to {}", dir.display())?;
    Ok(())
}
