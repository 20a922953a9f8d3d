//! The events of a run, from the first on.

use anyhow::{Context, Error, Result, bail};
use bytes::Bytes;
use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Event, decode_events};
use rollyard_store::log::jetstream::Connection;
use rollyard_store::log::{self, Archive, Payloads, Place, ReadError, ReplayError, jetstream};
use std::path::Path;

use crate::terminal::{ProgressLine, count};

pub(crate) struct History {
    kept: Kept,
    pub(crate) run: RunName,
}

enum Kept {
    Folder(Archive),
    Stream(Connection),
}

/// An event, and the record it stands in.
pub(crate) struct Entry {
    pub(crate) seq: u64,
    /// Of the payload that came with it, if one did.
    pub(crate) place: Place,
    pub(crate) event: Event,
}

/// Where a visit ended.
pub(crate) struct Visited {
    reader: Reader,
    /// The last record seen; 0 when there is none.
    pub(crate) last_seq: u64,
    /// What follows and is not a whole write.
    pub(crate) unread_bytes: u64,
}

enum Reader {
    Folder(log::Reader),
    Stream(jetstream::Reader),
}

impl Visited {
    pub(crate) fn payload(&self, place: Place) -> Result<Bytes, ReadError> {
        match &self.reader {
            Reader::Folder(reader) => reader.payload(place),
            Reader::Stream(reader) => reader.payload(place),
        }
    }
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
        Ok(Self { kept: Kept::Folder(archive), run })
    }

    /// A run that has a stream. It is not claimed: its owner may be at work.
    pub(crate) fn follow(connection: Connection, run: &str) -> Result<Self> {
        let run = RunName::try_from(run)?;
        let runs = connection.runs()?;
        if !runs.contains(&run) {
            // A run that is not whole is not listed; asking for it says so.
            connection.last_claim(&run)?;
            let (servers, yard) = (connection.settings().servers_told(), connection.yard());
            bail!("there is no run {:?} in yard {yard}{}: {servers}", run.as_str(), listed(&runs));
        }
        Ok(Self { kept: Kept::Stream(connection), run })
    }

    /// Visits every event in order.
    pub(crate) fn visit(&self, mut visit: impl FnMut(Entry) -> Result<()>) -> Result<Visited> {
        let mut progress = ProgressLine::new();
        let each = |record: log::Entry<'_>| -> Result<()> {
            let events = decode_events(record.body)
                .with_context(|| format!("record {} cannot be read", record.seq))?;
            if progress.is_due() {
                progress.write_over(&format!("reading record {}", count(record.seq)));
            }
            events
                .into_iter()
                .try_for_each(|event| visit(Entry { seq: record.seq, place: record.place, event }))
        };
        match &self.kept {
            Kept::Folder(archive) => {
                let log::Visited { reader, last_seq, unread_bytes } = archive.visit(each).map_err(told)?;
                Ok(Visited { reader: Reader::Folder(reader), last_seq, unread_bytes })
            }
            Kept::Stream(connection) => {
                let followed = connection.visit(&self.run, each).map_err(told)?;
                let followed = followed.ok_or_else(|| connection.gone(&self.run))?;
                let jetstream::Followed { reader, last_seq } = followed;
                Ok(Visited { reader: Reader::Stream(reader), last_seq, unread_bytes: 0 })
            }
        }
    }
}

fn told(error: ReplayError<Error>) -> Error {
    match error {
        ReplayError::Visit(error) => error,
        ReplayError::Log(error) => Error::new(error).context("cannot read the log"),
    }
}

/// The runs there are, for somebody who named another.
fn known(runs: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(runs) else {
        return "; this is not the data folder of a server".to_owned();
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<RunName> = names.filter_map(|name| RunName::try_from(name.as_str()).ok()).collect();
    names.sort();
    listed(&names)
}

fn listed(runs: &[RunName]) -> String {
    let names: Vec<&str> = runs.iter().map(RunName::as_str).collect();
    if names.is_empty() { "; there is none".to_owned() } else { format!("; known are: {}", names.join(", ")) }
}
