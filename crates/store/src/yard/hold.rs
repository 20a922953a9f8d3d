//! Keeps payloads on the disk until somebody has copied them.
//!
//! A segment whose rollouts are all consumed goes at once, unless an archive is behind: then it waits until the
//! archive has reached the record by which it could go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the log and its archive are, in records. Clones share it.
#[derive(Clone, Debug)]
pub struct Hold(Arc<Marks>);

#[derive(Debug)]
struct Marks {
    archived_seq: AtomicU64,
    committed_seq: AtomicU64,
}

impl Hold {
    /// Nobody copies anything.
    pub fn none() -> Self {
        Self::from(u64::MAX)
    }

    /// Payloads stay that came after this record.
    pub fn from(archived_seq: u64) -> Self {
        let (archived_seq, committed_seq) = (AtomicU64::new(archived_seq), AtomicU64::new(0));
        Self(Arc::new(Marks { archived_seq, committed_seq }))
    }

    /// Everything up to this record is kept elsewhere.
    pub fn advance(&self, archived_seq: u64) {
        self.0.archived_seq.store(archived_seq, Ordering::Release);
    }

    pub fn archived_seq(&self) -> u64 {
        self.0.archived_seq.load(Ordering::Acquire)
    }

    /// The last record that is durable.
    pub fn committed_seq(&self) -> u64 {
        self.0.committed_seq.load(Ordering::Acquire)
    }

    pub(super) fn note_committed(&self, seq: u64) {
        self.0.committed_seq.store(seq, Ordering::Release);
    }
}
