//! Buffers on their way back from the sync thread to the sequencer.
//!
//! A batch is filled on one thread and emptied on another. Giving the buffers back saves faulting in
//! fresh memory for every batch.

use std::sync::{Arc, Mutex, PoisonError};

/// As many as can be in flight with a batch being filled, one waiting and one being synced.
const SPARE_MAX: usize = 3;
/// A rare huge batch should not hold its memory for ever.
const KEEP_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_MAX && buffer.capacity() <= KEEP_BYTES_MAX {
            spare.push(buffer);
        }
    }
}
