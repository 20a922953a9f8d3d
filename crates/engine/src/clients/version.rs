//! The version of the weights as the trainer last said.

use std::sync::atomic::{AtomicI32, Ordering};

/// 0 until somebody says otherwise: the weights that training begins with.
#[derive(Debug, Default)]
pub(super) struct CurrentVersion(AtomicI32);

impl CurrentVersion {
    pub(super) fn get(&self) -> i32 {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, version: i32) {
        self.0.store(version, Ordering::Release);
    }
}
