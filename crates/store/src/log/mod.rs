//! The log of a run: the one thing that must be durable.
//!
//! A *record* is what one command did: the encoded events (`body`, about 150 bytes) and, when a rollout
//! came in, its JSON (`payload`, about 10 kB). Records are numbered from 1 without gaps, and a payload is
//! fetched by its [`Place`]. The bodies stay for ever, because they are the audit; a payload goes once
//! nothing needs it any more.
//!
//! # How it is used
//!
//! Two threads share the work, so that the next group of records is encoded while the last one syncs:
//!
//! ```text
//! sequencer:  Stager.stage(body, payload) -> Stamp     ...     Stager.take_batch() -> Batch
//!                                                                        |  bounded channel
//! sync:                                                 Writer.commit(Batch): one write, one fdatasync
//!                                                                        |
//! anyone:                                               Reader.payload(place), once committed
//! ```
//!
//! Nobody may be answered before `commit` has returned. After a restart the owner takes the newest
//! snapshot and replays what came later; see [`open`].
//!
//! # Where to read
//!
//! [`contract`] says what any log promises, method by method. The embedded log keeps the promise with
//! files: [`format`](mod@format) explains them, [`Stager`] and [`Writer`] make them, [`segment`] judges them after a
//! crash, [`open`] puts it together. [`jetstream`] keeps it with a stream of NATS, for a yard of many machines. [`memory`] is the same log without files, for tests. [`Archive`]
//! reads a log that somebody else is writing. [`copy`] takes a run from one kind of log to another. [`disk`] is the seam where tests break the disk.

pub mod contract;
mod error;

mod batch;
mod live;
mod pool;
mod stager;
mod writer;

pub mod format;
mod history;
pub mod segment;

mod directory;
pub mod disk;
mod lock;
mod snapshots;

mod archive;
mod open;
mod reader;
mod replay;

pub mod jetstream;
pub mod memory;

pub mod copy;

pub use archive::{Archive, Visited};
pub use batch::Batch;
pub use contract::{
    Blob, BlobPlace, Commit, Entry, KeepSnapshots, Log, Parts, Payloads, Release, SegmentNo, Snapshot,
    Sparse, Stage, Stamp,
};
pub use error::{LogError, ReadError, ReplayError, StageError};
pub use lock::DirLock;
pub use open::{Opened, Options, open};
pub use reader::Reader;
pub use replay::fuzz_read;
pub use rollyard_core::ids::Place;
pub use rollyard_core::run_config::Durability;
pub use snapshots::Snapshots;
pub use stager::Stager;
pub use writer::Writer;
