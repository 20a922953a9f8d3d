//! What one record of the log adds to an archive.

use super::layout::{Day, Stream};

/// Whole lines of JSONL for each stream; often for neither.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) seq: u64,
    pub(super) day: Day,
    pub(super) rollout: Vec<u8>,
    pub(super) fates: Vec<u8>,
}

impl Record {
    pub(super) fn lines(&self, stream: Stream) -> &[u8] {
        match stream {
            Stream::Rollouts => &self.rollout,
            Stream::Fates => &self.fates,
        }
    }
}
