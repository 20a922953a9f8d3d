//! Why a run was not copied.

use super::super::error::{LogError, ReadError, StageError};
use rollyard_core::ids::RunName;

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Log(#[from] LogError),

    #[error("there is no run {run}: {place}")]
    NoRun { run: RunName, place: String },

    /// Copies go where nothing is: two histories cannot be put together.
    #[error("run {run} is there already, with {records} records: {place}; {advice}")]
    NotEmpty { run: RunName, records: u64, place: String, advice: String },

    #[error("run {run} was written to while it was copied: {place}; stop the servers first")]
    Moved { run: RunName, place: String },

    #[error("record {seq} cannot be understood: {why}")]
    Record { seq: u64, why: String },

    #[error(
        "the rollout of record {seq} cannot be read: {cause}; `rollyard ledger check --payloads` counts all of those"
    )]
    Payload { seq: u64, cause: ReadError },

    #[error(transparent)]
    Stage(#[from] StageError),

    #[error("the books of the run do not balance: {0}")]
    Unbalanced(String),

    #[error("the log ends after record {found}, but {expected} were expected")]
    CutShort { found: u64, expected: u64 },

    /// What was read back is not what was written. Nothing is left of the copy.
    #[error("the copy differs from the run: {0}")]
    Differs(String),
}
