//! The last lines of a run's generator, for whoever looks from afar.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Enough for a traceback and what led to it.
const LINES_KEPT: usize = 200;

#[derive(Debug)]
pub(crate) struct Log {
    run: String,
    lines: Mutex<VecDeque<String>>,
}

impl Log {
    pub(super) fn new(run: &str) -> Self {
        Self { run: run.to_owned(), lines: Mutex::default() }
    }

    pub(super) fn push(&self, line: &str) {
        tracing::info!(target: "generator", run = self.run, "{line}");
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line.to_owned());
        while lines.len() > LINES_KEPT {
            lines.pop_front();
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
