//! Opens the runs and says how far it is.
//!
//! A terminal gets one line that is written over; anything else a line when a run begins. Either way there is
//! one line for every run that was recovered.

use anyhow::Result;
use rollyard_server::{RunError, Runs};
use rollyard_store::archive::ArchiveSettings;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::say;
use crate::terminal::{ProgressLine, count, size};

/// How long it took to open each run.
pub(super) type Took = BTreeMap<String, Duration>;

pub(super) fn open(
    data: &Path,
    knobs: &Map<String, Value>,
    archive: Option<ArchiveSettings>,
) -> Result<(Runs, Took), RunError> {
    let mut line = ProgressLine::new();
    let mut took = Took::new();
    let mut run_since = Instant::now();
    let runs = Runs::open_archived(data, knobs, archive, |run, done, total| {
        let is_new = !took.contains_key(run);
        if is_new && !took.is_empty() {
            // Runs are opened one after another, and this one has only begun to be read.
            run_since = Instant::now();
        }
        took.insert(run.to_owned(), run_since.elapsed());
        if is_new && !line.is_terminal() && total > 0 {
            say(&format!("recovering run {run}: {} to read", size(total)));
        }
        line.show(&format!("recovering run {run}"), done, total);
    })?;
    Ok((runs, took))
}

/// Says of every run that held something what it holds now.
pub(super) async fn report(runs: &Runs, took: &Took) -> Result<()> {
    for yard in runs.all() {
        let run = yard.run_name();
        let books = yard.ask(|ledger| ledger.books().clone()).await?;
        if books.admitted > 0 {
            let secs = took.get(run.as_str()).map_or(0.0, Duration::as_secs_f64);
            let (admitted, held) = (count(books.admitted), count(books.held));
            say(&format!(
                "recovered run {run}: {admitted} rollouts on its books, {held} held, in {secs:.1} s"
            ));
        }
    }
    Ok(())
}
