//! What the nodes of a yard share: the logs of the runs, and a channel on which they hear each other.
//!
//! A trait, so that tests can put two servers on ground that is only memory.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use rollyard_core::ids::RunName;
use rollyard_core::run_config::RunConfig;
use rollyard_store::log::{BlobPlace, LogError};
use rollyard_store::yard::{Yard, YardError};
use std::fmt;
use std::sync::Arc;

/// Who claims a run, as others are to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    pub node: String,
    pub url: String,
}

/// A run that was claimed and opened.
#[derive(Debug)]
pub struct Opened {
    pub yard: Yard,
    /// Of this claim: later claims have higher ones.
    pub epoch: u64,
    /// Who had claimed it before, if anybody had.
    pub before: Option<String>,
}

/// Blocking calls, except for the two about heartbeats.
pub trait Ground: Send + Sync + fmt::Debug + 'static {
    /// Every run there is.
    fn runs(&self) -> Result<Vec<RunName>, LogError>;

    /// Makes the log of a run, if there is none; true if it was made.
    fn create(&self, run: &RunName) -> Result<bool, LogError>;

    /// Claims the run, so that whoever had it can append nothing more, and opens it; begins it with `config` if its log
    /// is empty. May take long.
    fn open(&self, run: &RunName, config: &RunConfig, claimant: &Claimant) -> Result<Opened, YardError>;

    /// Where large payloads of a run may be put by whoever has them; `None` if they go through its owner.
    fn blobs(&self, _run: &RunName) -> Result<Option<Arc<dyn BlobPlace>>, LogError> {
        Ok(None)
    }

    /// Says something to all nodes, this one too. What cannot be said now need not be said later.
    fn shout(&self, heartbeat: Bytes) -> BoxFuture<'_, Result<(), String>>;

    /// What the nodes say from now on.
    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, Bytes>, String>>;
}
