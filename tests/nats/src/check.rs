//! Whether a history can be true of a yard that keeps its promises.
//!
//! Nothing here guesses: an operation that overlaps another may have come before or after it, and both are
//! allowed. What is reported cannot be explained by any order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::history::{Moment, Outcome, Record, Row, What};

/// What the yard says when everything is healed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// By uid, of every rollout that somebody tried to write. Those that are not here are unknown.
    pub fates: BTreeMap<String, Fate>,
    pub books: Books,
}

/// What became of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Held,
    Leased { lease: u64 },
    Trained { lease: u64 },
    Dropped { reason: String },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    pub admitted: u64,
    pub held: u64,
    pub leased: u64,
    pub trained: u64,
    pub dropped: u64,
}

/// Whether the servers measure time alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    Agree,
    /// Leases may end early or late; what is acked is still acked once.
    Differ,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A write was answered, and the rollout is not on the books.
    Lost { uid: String },
    /// Every write of it was refused, and it is on the books.
    Smuggled { uid: String },
    /// It was delivered, and nobody wrote it.
    Foreign { uid: String },
    /// It was delivered, and is not what was written.
    Garbled { uid: String },
    /// The yard forgot it after it had answered that it has it.
    Stale { uid: String, asked: Moment },
    /// Two leases with the same rollout were acked.
    AckedTwice { uid: String, leases: [u64; 2] },
    /// A rollout was granted again after its lease had been acked.
    GrantedAfterAck { uid: String, leases: [u64; 2] },
    /// A rollout was granted while another lease had it.
    Shared { uid: String, leases: [u64; 2] },
    /// One number was given to two grants.
    GrantedTwice { lease: u64 },
    /// A lease that had time left was refused, though nothing was broken when it was granted.
    Forgotten { lease: u64 },
    /// An ack was answered, and the rollout is not trained with that lease.
    AckLost { uid: String, lease: u64, fate: Option<Fate> },
    /// A client that cannot ack had it, and it came again though nothing was broken.
    ReadTwice { uid: String },
    /// The columns of the books do not add up.
    Unbalanced { books: Books },
    /// The books count other than the rollouts do.
    Miscounted { books: Books, counted: Books },
    /// Two nodes claimed one run in the same epoch.
    TwoOwners { run: String, epoch: u64, nodes: BTreeSet<String> },
}

/// How long after a fault its effects may still be met: a reader's answer is watched for a while, and a take-over
/// takes seconds.
const AFTERMATH: Duration = Duration::from_secs(5);

/// All that is wrong, and nothing twice.
pub fn check(records: &[Record], ending: &Ending, clocks: Clocks) -> Vec<Violation> {
    let told = Told::gather(records);
    let mut found = Vec::new();
    told.check_writes(ending, &mut found);
    told.check_questions(records, &mut found);
    told.check_deliveries(&mut found);
    told.check_leases(clocks, &mut found);
    told.check_acks(ending, &mut found);
    told.check_reads(&mut found);
    check_books(ending, &mut found);
    told.check_owners(&mut found);
    found.dedup();
    found
}

/// A history by what it is about.
#[derive(Default)]
struct Told<'a> {
    writes: BTreeMap<&'a str, Vec<(&'a Record, Outcome)>>,
    grants: Vec<Grant<'a>>,
    reads: Vec<(&'a Record, &'a [Row])>,
    acks: BTreeMap<u64, Vec<(&'a Record, Outcome)>>,
    returns: BTreeMap<u64, Vec<&'a Record>>,
    owners: BTreeMap<(&'a str, u64), BTreeSet<&'a str>>,
    faults: Vec<&'a Record>,
}

struct Grant<'a> {
    record: &'a Record,
    lease: u64,
    term: Duration,
    rows: &'a [Row],
}

impl<'a> Told<'a> {
    fn gather(records: &'a [Record]) -> Self {
        let mut told = Self::default();
        for record in records {
            match &record.what {
                What::Write { uids, outcome } => {
                    for uid in uids {
                        told.writes.entry(uid).or_default().push((record, *outcome));
                    }
                }
                What::Grant { lease, term, rows } => {
                    told.grants.push(Grant { record, lease: *lease, term: *term, rows });
                }
                What::Read { rows } => told.reads.push((record, rows)),
                What::Ack { lease, outcome } => told.acks.entry(*lease).or_default().push((record, *outcome)),
                What::Return { lease, .. } => told.returns.entry(*lease).or_default().push(record),
                What::Claim { node, run, epoch } => {
                    told.owners.entry((run, *epoch)).or_default().insert(node);
                }
                What::Fault { .. } => told.faults.push(record),
                What::Ask { .. } => {}
            }
        }
        told
    }

    fn check_writes(&self, ending: &Ending, found: &mut Vec<Violation>) {
        for (uid, attempts) in &self.writes {
            let is_there = ending.fates.contains_key(*uid);
            let any = |wanted: Outcome| attempts.iter().any(|(_, outcome)| *outcome == wanted);
            if any(Outcome::Ok) && !is_there {
                found.push(Violation::Lost { uid: (*uid).to_owned() });
            }
            if is_there && !any(Outcome::Ok) && !any(Outcome::Unknown) {
                found.push(Violation::Smuggled { uid: (*uid).to_owned() });
            }
        }
    }

    /// Whoever asks after a write was answered has to hear of it.
    fn check_questions(&self, records: &[Record], found: &mut Vec<Violation>) {
        for record in records {
            let What::Ask { uids, known } = &record.what else { continue };
            let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
            for uid in uids.iter().filter(|uid| !known.contains(uid.as_str())) {
                let attempts = self.writes.get(uid.as_str()).into_iter().flatten();
                let mut done = attempts.filter(|(_, outcome)| *outcome == Outcome::Ok);
                if done.any(|(write, _)| write.to < record.from) {
                    found.push(Violation::Stale { uid: uid.clone(), asked: record.from });
                }
            }
        }
    }

    fn check_deliveries(&self, found: &mut Vec<Violation>) {
        let granted = self.grants.iter().flat_map(|grant| grant.rows);
        for row in granted.chain(self.reads.iter().flat_map(|(_, rows)| *rows)) {
            let uid = || row.uid.clone();
            if !self.writes.contains_key(row.uid.as_str()) {
                found.push(Violation::Foreign { uid: uid() });
            } else if !row.is_whole {
                found.push(Violation::Garbled { uid: uid() });
            }
        }
    }

    fn check_leases(&self, clocks: Clocks, found: &mut Vec<Violation>) {
        let mut numbers = BTreeSet::new();
        let mut by_uid: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
        for grant in &self.grants {
            if !numbers.insert(grant.lease) {
                found.push(Violation::GrantedTwice { lease: grant.lease });
            }
            for row in grant.rows {
                by_uid.entry(&row.uid).or_default().push(grant);
            }
            let refused = self.acks.get(&grant.lease).into_iter().flatten().find(|(ack, outcome)| {
                *outcome == Outcome::Refused && ack.to < grant.record.from + grant.term
            });
            let is_returned = self.returns.contains_key(&grant.lease);
            if clocks == Clocks::Agree && refused.is_some() && !is_returned && !self.is_troubled(grant.record)
            {
                found.push(Violation::Forgotten { lease: grant.lease });
            }
        }
        for (uid, grants) in by_uid {
            for first in &grants {
                for second in grants.iter().filter(|second| second.lease != first.lease) {
                    self.check_pair(uid, first, second, clocks, found);
                }
            }
        }
    }

    fn check_pair(
        &self,
        uid: &str,
        first: &Grant,
        second: &Grant,
        clocks: Clocks,
        found: &mut Vec<Violation>,
    ) {
        let uid = uid.to_owned();
        let leases = [first.lease, second.lease];
        let acked = self.acked_by(first.lease);
        if acked.is_some() && self.acked_by(second.lease).is_some() {
            // Seen from both sides; told once.
            if first.lease < second.lease {
                found.push(Violation::AckedTwice { uid, leases });
            }
        } else if acked.is_some_and(|acked| second.record.from > acked) {
            found.push(Violation::GrantedAfterAck { uid, leases });
        } else if clocks == Clocks::Agree
            && second.record.from > first.record.to
            && second.record.to < self.earliest_end(first)
        {
            found.push(Violation::Shared { uid, leases });
        }
    }

    /// When it was known that a lease is acked.
    fn acked_by(&self, lease: u64) -> Option<Moment> {
        let acks = self.acks.get(&lease).into_iter().flatten();
        acks.filter(|(_, outcome)| *outcome == Outcome::Ok).map(|(ack, _)| ack.to).min()
    }

    /// Before this a lease cannot have ended.
    fn earliest_end(&self, grant: &Grant) -> Moment {
        let returns = self.returns.get(&grant.lease).into_iter().flatten();
        let returned = returns.map(|record| record.from).min().unwrap_or(Moment::MAX);
        returned.min(grant.record.from + grant.term)
    }

    fn check_acks(&self, ending: &Ending, found: &mut Vec<Violation>) {
        for grant in self.grants.iter().filter(|grant| self.acked_by(grant.lease).is_some()) {
            for row in grant.rows {
                let fate = ending.fates.get(&row.uid);
                if fate != Some(&Fate::Trained { lease: grant.lease }) {
                    let (uid, lease) = (row.uid.clone(), grant.lease);
                    found.push(Violation::AckLost { uid, lease, fate: fate.cloned() });
                }
            }
        }
    }

    /// A read is final when its answer has arrived; only what broke meanwhile excuses that it comes again.
    fn check_reads(&self, found: &mut Vec<Violation>) {
        let grants = self.grants.iter().map(|grant| (grant.record, grant.rows));
        let deliveries: Vec<(&Record, &[Row])> = grants.chain(self.reads.iter().copied()).collect();
        let mut by_uid: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for (record, rows) in deliveries {
            for row in rows {
                by_uid.entry(&row.uid).or_default().push(record);
            }
        }
        for (read, rows) in self.reads.iter().filter(|(read, _)| !self.is_troubled(read)) {
            for row in *rows {
                let others = by_uid.get(row.uid.as_str()).into_iter().flatten();
                if others.clone().any(|other| other.from > read.to) {
                    found.push(Violation::ReadTwice { uid: row.uid.clone() });
                }
            }
        }
    }

    /// Whether something was broken while it took place, or a little before or after.
    fn is_troubled(&self, record: &Record) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.from <= record.to + AFTERMATH && record.from <= fault.to + AFTERMATH)
    }

    fn check_owners(&self, found: &mut Vec<Violation>) {
        for ((run, epoch), nodes) in &self.owners {
            if nodes.len() > 1 {
                let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
                found.push(Violation::TwoOwners { run: (*run).to_owned(), epoch: *epoch, nodes });
            }
        }
    }
}

fn check_books(ending: &Ending, found: &mut Vec<Violation>) {
    let books = &ending.books;
    if books.admitted != books.held + books.leased + books.trained + books.dropped {
        found.push(Violation::Unbalanced { books: books.clone() });
    }
    let count = |is: fn(&Fate) -> bool| ending.fates.values().filter(|fate| is(fate)).count() as u64;
    let counted = Books {
        admitted: ending.fates.len() as u64,
        held: count(|fate| matches!(fate, Fate::Held)),
        leased: count(|fate| matches!(fate, Fate::Leased { .. })),
        trained: count(|fate| matches!(fate, Fate::Trained { .. })),
        dropped: count(|fate| matches!(fate, Fate::Dropped { .. })),
    };
    if counted != *books {
        found.push(Violation::Miscounted { books: books.clone(), counted });
    }
}

#[cfg(test)]
mod tests;
