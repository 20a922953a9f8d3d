//! The events of a run, from the first on.

use anyhow::{Context, Result, bail};
use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Event, decode_events};
use rollyard_store::log::{Archive, Place, ReplayError, Visited};
use std::path::Path;

use crate::terminal::{ProgressLine, count};

pub(crate) struct History {
    archive: Archive,
    pub(crate) run: RunName,
}

/// An event, and the record it stands in.
pub(crate) struct Entry {
    pub(crate) seq: u64,
    /// Of the payload that came with it, if one did.
    pub(crate) place: Place,
    pub(crate) event: Event,
}

impl History {
    pub(crate) fn open(data: &Path, run: &str) -> Result<Self> {
        let run = RunName::try_from(run)?;
        let runs = data.join("runs");
        let dir = runs.join(run.as_str());
        if !dir.is_dir() {
            bail!("there is no run {:?}{}: {}", run.as_str(), known(&runs), data.display());
        }
        let archive = Archive::open(&dir).context("cannot read the log")?;
        Ok(Self { archive, run })
    }

    /// Visits every event in order.
    pub(crate) fn visit(&self, mut visit: impl FnMut(Entry) -> Result<()>) -> Result<Visited> {
        let mut progress = ProgressLine::new();
        let visited = self.archive.visit(|record| -> Result<()> {
            let events = decode_events(record.body)
                .with_context(|| format!("record {} cannot be read", record.seq))?;
            if progress.is_due() {
                progress.write_over(&format!("reading record {}", count(record.seq)));
            }
            events
                .into_iter()
                .try_for_each(|event| visit(Entry { seq: record.seq, place: record.place, event }))
        });
        visited.map_err(|error| match error {
            ReplayError::Visit(error) => error,
            ReplayError::Log(error) => anyhow::Error::new(error).context("cannot read the log"),
        })
    }
}

/// The runs there are, for somebody who named another.
fn known(runs: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(runs) else {
        return "; this is not the data folder of a server".to_owned();
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    format!("; known are: {}", names.join(", "))
}
