//! How far a task is, for whoever asks.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts of one task, shared with whoever shows them.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) known: AtomicU64,
    pub(super) made: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) in_flight: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    /// What is waited for; nothing, while all is well.
    waits_for: Option<String>,
    last_failure: Option<String>,
}

/// All in rollouts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Of the whole task: instances times epochs times repeats.
    pub total: u64,
    /// Because the payload names their instance.
    pub skipped: u64,
    /// Written before the task began.
    pub known: u64,
    /// Asked of the engine and scored.
    pub made: u64,
    /// Could not be made, and were written as such.
    pub failed: u64,
    /// On the shelf, made and failed ones.
    pub written: u64,
    /// Not taken by the shelf, for another reason than that it is full.
    pub refused: u64,
    pub in_flight: u64,
    /// What the task waits for, or why the last rollout failed.
    pub last_error: Option<String>,
}

impl Progress {
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            total: read(&self.total),
            skipped: read(&self.skipped),
            known: read(&self.known),
            made: read(&self.made),
            failed: read(&self.failed),
            written: read(&self.written),
            refused: read(&self.refused),
            in_flight: read(&self.in_flight),
            last_error: self.last_error(),
        }
    }

    /// What the task waits for, or why the last rollout failed.
    pub fn last_error(&self) -> Option<String> {
        let trouble = self.trouble();
        trouble.waits_for.clone().or_else(|| trouble.last_failure.clone())
    }

    /// For people.
    pub fn line(&self) -> String {
        self.counts().line()
    }

    pub(super) fn begin(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Rollouts that failed before any was made.
    pub(super) fn failed_first(&self) -> u64 {
        let is_first = self.made.load(Ordering::Relaxed) == 0;
        if is_first { self.failed.load(Ordering::Relaxed) } else { 0 }
    }

    pub(super) fn waits_for(&self, what: String) {
        self.trouble().waits_for = Some(what);
    }

    pub(super) fn goes_on(&self) {
        self.trouble().waits_for = None;
    }

    pub(super) fn failure(&self, why: String) {
        self.trouble().last_failure = Some(why);
    }

    /// Nobody panics while holding it.
    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Rollouts that nothing has become of yet.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(self.skipped + self.known + self.written + self.refused)
    }

    pub fn line(&self) -> String {
        let Self { total, skipped, known, failed, written, refused, in_flight, last_error, .. } = self;
        let mut line = format!("{} of {total} rollouts done", skipped + known + written);
        for (count, what) in [
            (skipped, "skipped"),
            (known, "known before"),
            (failed, "failed"),
            (refused, "refused"),
            (in_flight, "under way"),
        ] {
            if *count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        if let Some(error) = last_error {
            line.push_str(&format!("; {error}"));
        }
        line
    }
}

/// One rollout under way, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Progress>);

impl UnderWay {
    pub(super) fn begin(progress: &Arc<Progress>) -> Self {
        count(&progress.in_flight);
        Self(Arc::clone(progress))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}
