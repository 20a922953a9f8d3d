//! Copies a run from one log to another, and proves it.
//!
//! ```text
//! read     the source is replayed by the real ledger, which then says which payloads it still needs
//! copy     records keep their numbers and their bodies byte for byte; needed payloads go along, and get new places
//! verify   the target is read anew: every body, every payload, the books
//! finish   only now is it a run
//! ```
//!
//! A payload that nothing needs stays behind, as if its segment had been released. While the source is replayed,
//! the ledger gets the number of each record for a place: places mean nothing to it, and those of a stream may come
//! up again after a release, which numbers never do.
//!
//! [`Source`] and [`Target`] are what either end must be able to do. [`FolderSource`] and [`FolderTarget`] are those of
//! the embedded log, [`StreamSource`] and [`StreamTarget`] those of a stream.

mod error;
mod folder;
mod needed;
mod source;
mod stream;
mod target;
mod transfer;
mod verify;

pub use error::CopyError;
pub use folder::{DataFolder, FolderSource, FolderTarget};
pub use source::{Mark, Seen, Source};
pub use stream::{StreamSource, StreamTarget};
pub use target::Target;

use rollyard_core::ids::RunName;
use rollyard_core::ledger::Books;
use std::time::{Duration, Instant};

use needed::Needed;

/// What is being done, and how far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub doing: Doing,
    /// Records so far.
    pub records: u64,
    /// Records in all; 0 while that is not known.
    pub records_total: u64,
    /// Bytes of payloads so far.
    pub payload_bytes: u64,
    pub payload_bytes_total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Reading,
    Copying,
    Verifying,
}

/// A run that was copied.
#[derive(Clone, Debug)]
pub struct Copied {
    pub records: u64,
    pub body_bytes: u64,
    /// Payloads that the ledger needs.
    pub payloads: u64,
    pub payload_bytes: u64,
    pub books: Books,
    /// Without reading beforehand and verifying afterwards.
    pub copying: Duration,
    pub whole: Duration,
}

/// Copies a run; it is whole and verified when this returns, or nothing is there that could be taken for it.
pub fn copy<S: Source, T: Target>(
    run: &RunName,
    source: &S,
    target: &mut T,
    watch: &mut dyn FnMut(Progress),
) -> Result<Copied, CopyError> {
    let started = Instant::now();
    target.check()?;
    let before = source.mark()?;
    let outcome = Needed::find(source, &before, watch).and_then(|(needed, reader)| {
        let copied = fill(source, &reader, &needed, target, watch, started);
        // A target that cannot be used is no reason to ask what the source does.
        match &copied {
            Ok(_) => still_there(run, source, &before)?,
            Err(CopyError::Payload { .. } | CopyError::Differs(_)) => still_there(run, source, &before)?,
            Err(_) => {}
        }
        copied
    });
    match outcome {
        Ok(copied) => {
            target.finish()?;
            Ok(Copied { whole: started.elapsed(), ..copied })
        }
        Err(error) => {
            if let Err(left) = target.abandon() {
                tracing::warn!(%run, "a part of the copy is left, and the next copy removes it: {left}");
            }
            Err(error)
        }
    }
}

fn fill<S: Source, T: Target>(
    source: &S,
    reader: &S::Reader,
    needed: &Needed,
    target: &mut T,
    watch: &mut dyn FnMut(Progress),
    started: Instant,
) -> Result<Copied, CopyError> {
    let log = target.begin()?;
    let began = Instant::now();
    let (body_bytes, snapshots) = transfer::transfer(source, reader, needed, log, watch)?;
    let copying = began.elapsed();
    let ledger = verify::verify(source, reader, needed, &target.view()?, watch)?;
    transfer::keep_snapshot::<T::Log>(&snapshots, needed.last_seq, &ledger)?;
    Ok(Copied {
        records: needed.last_seq,
        body_bytes,
        payloads: needed.payloads.len() as u64,
        payload_bytes: needed.payload_bytes,
        books: ledger.books().clone(),
        copying,
        whole: started.elapsed(),
    })
}

fn still_there(run: &RunName, source: &impl Source, before: &Mark) -> Result<(), CopyError> {
    if source.mark()? == *before {
        return Ok(());
    }
    Err(CopyError::Moved { run: run.clone(), place: source.place() })
}
