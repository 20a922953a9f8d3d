//! The files that a command is given, indexed, with a word on the terminal of how far that is.

use anyhow::{Context, Result};
use rollyard_store::catalog::{Catalog, Progress};
use rollyard_store::places::{Places, Roots};
use rollyard_store::query::Query;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crate::say;
use crate::terminal::{ProgressLine, count, many, size};

/// Opens the places and brings their catalog up to date.
pub(crate) fn open(places: &[String]) -> Result<Query> {
    let catalog = Catalog::open(Places::new(Roots::Anywhere), places, &Catalog::default_cache())?;
    let line = Mutex::new(ProgressLine::new());
    let report = |progress: Progress| {
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_due() {
            line.write_over(&told(&progress));
        }
    };
    // Ctrl-C ends the process: what was indexed by then is kept, and nothing is half there.
    let done = catalog.refresh(&report, &AtomicBool::new(false))?;
    drop(line);
    if done.bad_rows > 0 {
        say(&format!(
            "{} of {} could not be read; `select problem, source_file, line from bad_rows` lists them",
            count(done.bad_rows),
            many(usize::try_from(done.rows).unwrap_or(usize::MAX), "row")
        ));
    }
    say_unread(&catalog).context("the catalog was made, but cannot be read")?;
    Ok(Query::new(catalog))
}

/// Names the files that could not be read. The whole health card would count every group, which nobody asked for.
fn say_unread(catalog: &Catalog) -> Result<()> {
    let connection = catalog.connect()?;
    let mut unread = connection.prepare("select url, problem from sources where problem is not null")?;
    let mut rows = unread.query([])?;
    while let Some(row) = rows.next()? {
        let (url, why): (String, String) = (row.get(0)?, row.get(1)?);
        say(&format!("left out: {why}: {url}"));
    }
    Ok(())
}

fn told(progress: &Progress) -> String {
    if progress.waiting {
        return "another process is indexing the same files; waiting for it".to_owned();
    }
    let share = (progress.bytes_done * 100).checked_div(progress.bytes).unwrap_or(100);
    format!("indexing: {share}% of {}, {} rollouts", size(progress.bytes), count(progress.rows))
}

/// Writes a whole file, or none.
pub(crate) fn put(place: &str, bytes: bytes::Bytes) -> Result<()> {
    let mut upload = Places::new(Roots::Anywhere).create(place)?;
    upload.write(bytes)?;
    upload.finish()?;
    Ok(())
}

/// What the name of a file ends in.
pub(crate) fn ending(place: &str) -> Option<&str> {
    Path::new(place).extension().and_then(|ending| ending.to_str())
}
