//! What can go wrong with a log, sorted by what the owner should do about it.

use super::contract::SegmentNo;
use super::format::{BODY_LEN_MAX, PAYLOAD_LEN_MAX};
use rollyard_core::ids::Place;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opening or writing failed. Cheap to clone, because a broken writer repeats its first error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// Nothing is lost: make room, open the log again.
    #[error("no space left to {doing}: {}", path.display())]
    NoSpace { doing: &'static str, path: PathBuf },

    #[error("cannot {doing}: {cause}: {}", path.display())]
    Io { doing: &'static str, cause: Arc<io::Error>, path: PathBuf },

    /// The kernel may have dropped what was written and call the next sync a success. Whoever trusts
    /// this process's view of the disk would answer for records that are not there, so only a new process
    /// may open this log again; it writes the last batch once more before it relies on it.
    #[error("cannot sync, so what is on the disk is unknown until a restart: {cause}: {}", path.display())]
    Sync { cause: Arc<io::Error>, path: PathBuf },

    /// Durable data has changed; going on would lose records.
    #[error("corrupt at byte {offset}: {what}: {}", path.display())]
    Corrupt { what: String, offset: u64, path: PathBuf },

    #[error("format version {found}, this program knows {known}: {}", path.display())]
    Version { found: u32, known: u32, path: PathBuf },

    #[error("in use by process {pid}: {}", path.display())]
    Locked { pid: String, path: PathBuf },

    #[error("the directory cannot be written: {cause}: {}", path.display())]
    NotWritable { cause: Arc<io::Error>, path: PathBuf },

    #[error("a batch begins at record {found}, but the log continues with {expected}")]
    OutOfOrder { expected: u64, found: u64 },

    /// The servers of a stream cannot be used at all, or not like this.
    #[error("the NATS servers {servers} cannot be used: {cause}")]
    Server { servers: String, cause: String },

    /// The servers did not do it. Whether they will is seen by trying again.
    #[error("cannot {doing}: {cause}: stream {stream}")]
    Stream { doing: &'static str, cause: String, stream: String },

    /// Somebody else owns the log from here on; nothing of ours fits any more.
    #[error("{node} at {url} has taken the run over (epoch {epoch}): stream {stream}")]
    Fenced { epoch: u64, node: String, url: String, stream: String },

    /// A copy was interrupted, or is under way: what is there is not the whole run.
    #[error(
        "run {run} was not copied to its end; run `rollyard ledger copy` again, which begins anew, or remove the stream: \
         stream {stream}"
    )]
    Unfinished { run: String, stream: String },

    #[error("segment {segment} was released after record {after_seq}, but only {committed_seq} is committed")]
    ReleasedEarly { segment: SegmentNo, after_seq: u64, committed_seq: u64 },
}

impl LogError {
    /// Whether this process must not open the log again.
    #[must_use]
    pub fn is_poison(&self) -> bool {
        matches!(self, Self::Sync { .. })
    }

    /// Whether another process owns the log now.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    pub(super) fn io(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { doing, path },
            _ => Self::Io { doing, cause: Arc::new(cause), path },
        }
    }

    pub(super) fn sync(path: &Path, cause: io::Error) -> Self {
        Self::Sync { cause: Arc::new(cause), path: path.to_owned() }
    }

    pub(super) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into(), offset, path: path.to_owned() }
    }
}

/// Lets a writer fail once: what it says then, it says for ever.
#[derive(Debug, Default)]
pub(super) struct Failure(Option<LogError>);

impl Failure {
    pub(super) fn check(&self) -> Result<(), LogError> {
        self.0.clone().map_or(Ok(()), Err)
    }

    pub(super) fn remember<T>(&mut self, result: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(error) = &result {
            self.0 = Some(error.clone());
        }
        result
    }
}

/// A record that no log takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    #[error("a {what} of {len} bytes is over the limit of {max}")]
    TooLarge { what: &'static str, len: usize, max: usize },

    #[error("the batch holds {staged_bytes} bytes already: take it before staging more")]
    BatchFull { staged_bytes: u64 },

    #[error("this log keeps its payloads itself: send the rollout whole")]
    NoBlobs,

    #[error("it was stored for claim {claim} of the run, which is {now} now: store it again")]
    OtherClaim { claim: u64, now: u64 },
}

impl StageError {
    /// Refuses lengths that the format cannot hold.
    pub(super) fn check_lens(body_len: usize, payload_len: usize) -> Result<(), Self> {
        for (what, len, max) in [("body", body_len, BODY_LEN_MAX), ("payload", payload_len, PAYLOAD_LEN_MAX)]
        {
            if len > max {
                return Err(Self::TooLarge { what, len, max });
            }
        }
        Ok(())
    }
}

/// A payload that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// This payload is damaged; others are not concerned.
    #[error("the payload at {place} is corrupt: {what}: {}", path.display())]
    Corrupt { place: Place, what: &'static str, path: PathBuf },

    /// Its segment was released, or removed by somebody else.
    #[error("the payload at {place} is gone: {}", path.display())]
    Gone { place: Place, path: PathBuf },

    #[error("cannot read the payload at {place}: {cause}: {}", path.display())]
    Io { place: Place, cause: io::Error, path: PathBuf },
}

/// A replay ended early: the log's fault or the visitor's.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<E> {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}")]
    Visit(E),
}
