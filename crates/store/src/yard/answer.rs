//! What a yard is given and what it says.

use bytes::Bytes;
use rollyard_core::ids::{LeaseNo, Time};
use rollyard_core::ledger::{Books, LeasedGroup, Refusal, SampledRow};
use rollyard_core::pipeline::MetaInfo;
use rollyard_core::wire::item::Item;
use rollyard_core::wire::reference::Stored;
use xxhash_rust::xxh3::xxh3_64;

use crate::log::{Blob, LogError, StageError};

/// A rollout on its way in: what was read from it, and its bytes as they came, or where they are.
#[derive(Clone, Debug)]
pub struct Submission {
    pub(super) item: Item,
    pub(super) payload: Payload,
    pub(super) digest: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Payload {
    Here(Bytes),
    /// Whoever made it has put it where the log keeps blobs.
    Stored(Blob),
}

impl Payload {
    pub(super) const NONE: Self = Self::Here(Bytes::new());
}

impl Submission {
    /// Hashes the payload, so that the sequencer need not.
    pub fn new(item: Item, payload: Bytes) -> Self {
        let digest = xxh3_64(&payload);
        Self { item, payload: Payload::Here(payload), digest }
    }

    /// A rollout whose bytes were stored by whoever made it. The caller has seen them there: [`Yard::is_stored`].
    ///
    /// [`Yard::is_stored`]: super::Yard::is_stored
    pub fn stored(item: Item, stored: Stored) -> Self {
        let Stored { size_bytes, digest, crc32c, claim } = stored;
        let blob = Blob { name: stored.blob_name(&item.uid), len: size_bytes, crc32c, claim };
        Self { item, payload: Payload::Stored(blob), digest }
    }

    /// Whether its bytes were stored by whoever made it.
    pub fn is_by_reference(&self) -> bool {
        matches!(self.payload, Payload::Stored(_))
    }

    pub fn uid(&self) -> &str {
        &self.item.uid
    }

    pub fn size_bytes(&self) -> usize {
        match &self.payload {
            Payload::Here(bytes) => bytes.len(),
            Payload::Stored(blob) => blob.len as usize,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The same rollout was written before; nothing changed.
    pub duplicate: bool,
    /// Rollouts in its group now; 0 if the group is complete and gone.
    pub group_size_now: usize,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum AdmitError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Unstaged(#[from] StageError),
}

/// A lease, with all that is needed to deliver it.
#[derive(Clone, Debug)]
pub struct Granted {
    pub lease: LeaseNo,
    pub until: Time,
    /// What a queue hands out.
    pub groups: Vec<LeasedGroup>,
    /// What was drawn, in a run that samples.
    pub rows: Vec<SampledRow>,
    pub meta: Option<MetaInfo>,
}

/// A command that is done and durable.
#[derive(Clone, Debug)]
pub struct Done {
    /// False if it had been done before and nothing changed.
    pub changed: bool,
    pub books: Books,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum YardError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{told}: {0}", told = of_log(.0))]
    Log(LogError),
    /// Ask again: another node answers for the run now.
    #[error("{node} at {url} owns the run since epoch {epoch}; ask there, or again here")]
    Moved { node: String, url: String, epoch: u64 },
    #[error("the run's state cannot be made from its log: {0}")]
    State(String),
    #[error(transparent)]
    Unstaged(#[from] StageError),
    #[error("the run is closed")]
    Closed,
}

/// What became of a request whose log failed.
fn of_log(error: &LogError) -> &'static str {
    match error {
        LogError::Stream { .. } => {
            "the log has not said whether it was written, so ask again: what is there is recognised by its uid"
        }
        _ => "the log cannot be written, nothing of this was kept",
    }
}

impl From<LogError> for YardError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Fenced { epoch, node, url, .. } => Self::Moved { node, url, epoch },
            error => Self::Log(error),
        }
    }
}
