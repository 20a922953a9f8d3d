//! Where a task's rollouts go, and which of them are there.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::fmt;

/// A run's place for rollouts. Whoever writes may write again what was not answered: an item is known by its uid.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// Which of these were written at any time; at most [`KNOWN_MAX`] are asked after in one call.
    fn known(&self, uids: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, ShelfError>>;

    /// Each item is JSON. The answer has one place for each, in the same order; what is answered as written is
    /// durable. An error says that none of them may be counted on.
    fn write(&self, items: Vec<Bytes>) -> BoxFuture<'_, Result<Vec<Result<Written, Refused>>, ShelfError>>;
}

/// Uids that are asked after in one call.
pub const KNOWN_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// It was there before, to the byte.
    pub duplicate: bool,
}

/// An item that was not taken; the others of its call may have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Refused {
    /// As in the answers of the server: `full` passes, `uid_taken` means that the rollout is there.
    pub code: String,
    pub message: String,
}

/// The shelf itself is broken, and the task cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShelfError(pub String);
