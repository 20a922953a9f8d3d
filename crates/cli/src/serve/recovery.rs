//! Opens the runs and says how far it is.
//!
//! A terminal gets one line that is written over; anything else a line when a run begins. Either way there is
//! one line for every run that was recovered.

use anyhow::Result;
use rollyard_server::{RunError, Runs};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::say;

/// How often the line is written over.
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// How long it took to open each run.
pub(super) type Took = BTreeMap<String, Duration>;

pub(super) fn open(data: &Path, knobs: &Map<String, Value>) -> Result<(Runs, Took), RunError> {
    let mut progress = Progress {
        run_since: Instant::now(),
        took: Took::new(),
        drawn_at: None,
        is_terminal: io::stderr().is_terminal(),
    };
    let opened = Runs::open(data, knobs, |run, done, total| progress.show(run, done, total));
    progress.wipe();
    Ok((opened?, progress.took))
}

/// Says of every run that held something what it holds now.
pub(super) async fn report(runs: &Runs, took: &Took) -> Result<()> {
    for yard in runs.all() {
        let run = yard.run_name();
        let books = yard.ask(|ledger| ledger.books().clone()).await?;
        if books.admitted > 0 {
            let secs = took.get(run.as_str()).map_or(0.0, Duration::as_secs_f64);
            let (admitted, held) = (books.admitted, books.held);
            say(&format!(
                "recovered run {run}: {admitted} rollouts on its books, {held} held, in {secs:.1} s"
            ));
        }
    }
    Ok(())
}

struct Progress {
    /// When the run that is being opened was begun.
    run_since: Instant,
    took: Took,
    drawn_at: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    fn show(&mut self, run: &str, done: u64, total: u64) {
        let is_new = !self.took.contains_key(run);
        if is_new && !self.took.is_empty() {
            // Runs are opened one after another, and this one has only begun to be read.
            self.run_since = Instant::now();
        }
        self.took.insert(run.to_owned(), self.run_since.elapsed());
        if total == 0 {
            return;
        }
        if self.is_terminal {
            self.draw(&format!("recovering run {run}: {}% of {}", done * 100 / total, megabytes(total)));
        } else if is_new {
            say(&format!("recovering run {run}: {} to read", megabytes(total)));
        }
    }

    fn draw(&mut self, line: &str) {
        if self.drawn_at.is_none_or(|drawn_at| drawn_at.elapsed() >= REDRAW_EVERY) {
            self.drawn_at = Some(Instant::now());
            write_over(line);
        }
    }

    fn wipe(&self) {
        if self.drawn_at.is_some() {
            write_over("");
        }
    }
}

fn write_over(line: &str) {
    let mut stderr = io::stderr();
    // A line that cannot be shown is not worth failing for.
    let _nobody_looks = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
