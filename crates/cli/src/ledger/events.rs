//! `rollyard ledger events`: everything that happened, line by line.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};

use super::history::{Entry, History};
use super::tell::{clock, sentence, time_of};

/// Print everything that happened, in order
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
    rollyard ledger events --from 1000 --json | jq 'select(.event == \"Leased\")'")]
pub(super) struct Arguments {
    /// Begin with this record
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// A JSON object a line: seq, event, data
    #[arg(long)]
    json: bool,
}

pub(super) fn run(history: &History, arguments: &Arguments) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    history.visit(|entry| {
        if entry.seq >= arguments.from {
            let line = if arguments.json { as_json(&entry) } else { in_words(&entry) };
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    Ok(out.flush()?)
}

pub(super) fn in_words(entry: &Entry) -> String {
    let time = time_of(&entry.event).map_or_else(|| " ".repeat(24), clock);
    format!("{:>8}  {time}  {}", entry.seq, sentence(&entry.event))
}

fn as_json(entry: &Entry) -> String {
    // An event is an object with its name as the only key.
    let (event, data) = match serde_json::to_value(&entry.event) {
        Ok(Value::Object(named)) => named.into_iter().next().unwrap_or_default(),
        _ => Default::default(),
    };
    json!({"seq": entry.seq, "event": event, "data": data}).to_string()
}
