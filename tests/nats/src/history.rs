//! What clients asked, what they were told, and when.
//!
//! All times are of one clock: that of the test, which no fault touches. An operation took place somewhere between
//! its two times; what was not answered may have taken place or not, then or later.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Since the history began.
pub type Moment = Duration;

/// Something that a client did, or that was done to the servers.
#[derive(Clone, Debug)]
pub struct Record {
    pub from: Moment,
    pub to: Moment,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Write {
        uids: Vec<String>,
        outcome: Outcome,
    },
    /// Groups that were granted until they are acked, returned, or the time is over.
    Grant {
        lease: u64,
        term: Duration,
        rows: Vec<Row>,
    },
    /// Groups for a client that cannot ack.
    Read {
        rows: Vec<Row>,
    },
    Ack {
        lease: u64,
        outcome: Outcome,
    },
    Return {
        lease: u64,
        outcome: Outcome,
    },
    /// Which of these were known.
    Ask {
        uids: Vec<String>,
        known: Vec<String>,
    },
    /// A node said that a node owns a run.
    Claim {
        node: String,
        run: String,
        epoch: u64,
    },
    /// Something was broken from here to there.
    Fault {
        name: String,
    },
}

/// A rollout as it was delivered.
#[derive(Clone, Debug)]
pub struct Row {
    pub uid: String,
    /// Everything else is what was written.
    pub is_whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// Refused for good: it did not happen, and will not.
    Refused,
    /// No answer, or one that says nothing.
    Unknown,
}

/// Written by many clients at once.
#[derive(Debug)]
pub struct History {
    begun: Instant,
    records: Mutex<Vec<Record>>,
    troubles: Mutex<BTreeMap<String, u64>>,
}

impl Default for History {
    fn default() -> Self {
        Self { begun: Instant::now(), records: Mutex::default(), troubles: Mutex::default() }
    }
}

impl History {
    pub fn now(&self) -> Moment {
        self.begun.elapsed()
    }

    /// Notes what began at a moment and has just ended.
    pub fn note(&self, from: Moment, what: What) {
        let to = self.now();
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(Record { from, to, what });
    }

    /// Notes a fault for as long as it takes to do this.
    pub fn during<T>(&self, name: &str, fault: impl FnOnce() -> T) -> T {
        let from = self.now();
        let done = fault();
        self.note(from, What::Fault { name: name.to_owned() });
        done
    }

    /// Counts a reason why something is not known. The checker has no use for it; whoever reads a failure has.
    pub fn note_trouble(&self, said: &str) {
        *self.troubles.lock().unwrap_or_else(PoisonError::into_inner).entry(said.to_owned()).or_default() +=
            1;
    }

    pub fn troubles(&self) -> BTreeMap<String, u64> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In the order in which they ended.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes that were answered well and begun after a moment.
    pub fn writes_since(&self, moment: Moment) -> usize {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let late = records.iter().rev().filter(|record| record.from >= moment);
        late.filter(|record| matches!(record.what, What::Write { outcome: Outcome::Ok, .. })).count()
    }
}
