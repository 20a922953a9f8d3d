//! `rollyard ledger check`: replays a run from its first record and counts everything again.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use rollyard_core::ledger::{Books, Ledger};
use rollyard_core::run_config::RunConfig;
use std::io::{self, Write};

use super::history::{History, Visited};
use crate::terminal::{ProgressLine, Table, count, size};

/// Replay the whole log and check that the books balance
#[derive(Debug, Args)]
#[command(after_help = "\
Ends with code 1 if something is wrong.

Example:
    rollyard ledger check --data ./yard-data --run default")]
pub(super) struct Arguments {
    /// Also read every rollout that is kept and check its bytes
    #[arg(long)]
    payloads: bool,
}

pub(super) fn run(history: &History, arguments: &Arguments) -> Result<()> {
    let (ledger, visited) = replay(history)?;
    let mut out = io::stdout();
    write!(out, "{}", table(ledger.books()))?;
    if visited.unread_bytes > 0 {
        let unread = size(visited.unread_bytes);
        writeln!(
            out,
            "{unread} follow that are not a whole write: one under way, or one that was never answered"
        )?;
    }
    ledger.audit().map_err(|wrong| anyhow!("run {}: {wrong}", history.run))?;
    if arguments.payloads {
        check_payloads(&ledger, &visited)?;
        let (kept, bytes) = ledger.books().kept();
        writeln!(out, "the bytes of {} rollouts are sound ({})", count(kept), size(bytes))?;
    }
    let records = count(visited.last_seq);
    writeln!(out, "run {}: {records} records replayed, every rollout accounted for", history.run)?;
    Ok(())
}

/// The ledger as the log makes it.
pub(crate) fn replay(history: &History) -> Result<(Ledger, Visited)> {
    // The first record of a log says by which rules it was written.
    let mut ledger = Ledger::new(RunConfig::default());
    let mut freed = Vec::new();
    let visited = history.visit(|entry| {
        ledger.apply(&entry.event, entry.place, &mut freed);
        freed.clear();
        Ok(())
    })?;
    Ok((ledger, visited))
}

/// The books, with the two sides that must be equal at the end.
pub(crate) fn table(books: &Books) -> String {
    let mut table = Table::new(&["", "rollouts", "size"]);
    let mut row = |name: &str, rollouts: u64, bytes: Option<u64>| {
        table.push(vec![name.to_owned(), count(rollouts), bytes.map(size).unwrap_or_default()]);
    };
    row("held", books.held, Some(books.held_bytes));
    row("leased", books.leased, Some(books.leased_bytes));
    row("trained", books.trained, None);
    row("  kept for a rewind", books.retained, Some(books.retained_bytes));
    row("dropped", books.dropped_total(), None);
    for (reason, dropped) in &books.dropped {
        row(&format!("  {reason}"), *dropped, None);
    }
    let sum = books.held + books.leased + books.trained + books.dropped_total();
    row("held + leased + trained + dropped", sum, None);
    row("admitted", books.admitted, None);
    table.to_string()
}

fn check_payloads(ledger: &Ledger, visited: &Visited) -> Result<()> {
    let mut progress = ProgressLine::new();
    let (_, total) = ledger.books().kept();
    let (mut done, mut damaged) = (0, Vec::new());
    for (place, size_bytes) in ledger.places() {
        if let Err(error) = visited.payload(place) {
            damaged.push(error.to_string());
        }
        done += u64::from(size_bytes);
        progress.show("checking rollouts", done, total);
    }
    if let Some(first) = damaged.first() {
        bail!("{} rollouts cannot be read; the first: {first}", damaged.len());
    }
    Ok(())
}
