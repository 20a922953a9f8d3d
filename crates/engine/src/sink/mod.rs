//! Where rollouts go, beside back to the caller: a yard, an archive, the dump of an experiment.

mod archive;
mod dump;
mod identity;
pub mod item;
mod yard;

pub use archive::{Archive, ArchiveError, ArchiveSettings, Past};
pub use dump::{Dump, DumpSettings};
pub use identity::Naming;
pub use yard::YardSink;

use futures_util::future::BoxFuture;
use std::fmt;

use crate::executor::Finished;

/// Is given every task that has ended, whatever became of it, before it counts as ended.
pub trait Sink: Send + Sync + fmt::Debug {
    /// An error stops the run: what was made would be lost. A task that went stale while it waited to be
    /// taken comes a second time, rejected.
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>>;
}

#[cfg(test)]
mod tests;
