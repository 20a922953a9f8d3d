//! Rollouts as columns of an Arrow IPC stream, and back.
//!
//! One row is one rollout; `docs/reference/rollout-files.md` has every column. The schema's metadata says what
//! is true of all rows ([`About`]) and how many there are. Each row has a digest of its content and the metadata
//! has one of its own, so a bit that flipped on disk is found, costs the row it is in, and never becomes
//! another rollout. Bytes may come from anywhere: they are checked before anything is made of them.

mod decode;
mod digest;
mod encode;
mod frames;
mod schema;

pub use decode::decode;
pub use encode::encode;

use rollyard_core::rollout::{Metadata, Rollout};
use std::collections::BTreeMap;

/// The format as this build writes it, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// A rollout and what is known of it in its batch.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub rollout: &'a Rollout,
    /// Rollouts with the same number are compared with each other.
    pub group: u32,
    pub uid: Option<&'a str>,
    pub advantage: Option<f32>,
    /// How often it was sampled from a replay buffer.
    pub used: Option<u32>,
}

/// A [`Row`] that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRow {
    pub rollout: Rollout,
    pub group: u32,
    pub uid: Option<String>,
    pub advantage: Option<f32>,
    pub used: Option<u32>,
}

impl OwnedRow {
    pub fn as_row(&self) -> Row<'_> {
        let &Self { ref rollout, group, ref uid, advantage, used } = self;
        Row { rollout, group, uid: uid.as_deref(), advantage, used }
    }
}

/// What is true of all rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Of the batch.
    pub metadata: Metadata,
    /// Whatever else the writer wants kept.
    pub extras: BTreeMap<String, String>,
}

/// What a stream held.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub about: About,
    pub rows: Vec<OwnedRow>,
    /// Rows that are left out of `rows`; their groups are incomplete.
    pub damaged: Vec<Damaged>,
}

/// A row that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} of group {group} is damaged: {why}")]
pub struct Damaged {
    pub row: usize,
    /// As the row says; it may be just this that is damaged.
    pub group: u32,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ColumnsError {
    #[error(
        "{column} has {values} values in all, but a batch can hold {}; write fewer rollouts at once",
        i32::MAX
    )]
    TooLarge { column: &'static str, values: usize },
    #[error("the batch's timestamp is {value}, but must be a finite number")]
    Timestamp { value: f64 },
    #[error("this is not an Arrow stream ({why})")]
    NotArrow { why: String },
    #[error("the stream ends in the middle of a message, at byte {at}")]
    Cut { at: usize },
    #[error("this is an Arrow stream, but not one of rollouts: its schema has no {key}")]
    NotRollouts { key: &'static str },
    #[error(
        "the rollouts are in format {found}, but this build reads format {FORMAT_VERSION}; use a newer build"
    )]
    Version { found: String },
    #[error("the schema's {key} is {value:?}, but must be a number")]
    About { key: &'static str, value: String },
    #[error("the facts about the batch are damaged: their digest is {found}, but {expected} was written")]
    AboutDigest { found: String, expected: String },
    #[error("the column {column} is missing")]
    NoColumn { column: &'static str },
    #[error("the column {column} is of the type {found}, but must be {expected}")]
    Type { column: &'static str, found: String, expected: String },
    #[error("the column {column} is of the type {found}, which cannot be passed over; leave it out")]
    Strange { column: String, found: String },
    #[error("there are {found} rows, but {expected} were written")]
    Rows { found: usize, expected: usize },
}
