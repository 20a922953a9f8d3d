//! The books of one run: which rollouts there are, in which groups, who has them, what became of them.
//!
//! Nothing here changes but by an [`Event`], and no event comes from anywhere but [`Ledger::decide`]:
//!
//! ```text
//! decide(&ledger, command, now) -> events or a refusal      looks, changes nothing
//! apply(&mut ledger, event)                                 cannot fail
//! ```
//!
//! Whoever owns a ledger writes the events to a log before anybody hears of them; reading the log back and
//! applying gives the same ledger, byte for byte ([`Ledger::snapshot`]). Three things make that hold:
//! time is an argument, hashes are fixed, and whatever order matters is kept in ordered maps.
//!
//! What must always be true ([`Ledger::audit`] checks it from scratch):
//! - admitted = held + leased + trained + dropped;
//! - a group in the ready index is closed or finished, valid, and in no lease;
//! - a group that the generator's functions are asked about is in no other index;
//! - a rollout is in exactly one group, and a group in at most one lease;
//! - a group never holds more than the group size, two epochs, or more versions than allowed.
//!
//! A lookup costs what it returns: ready groups, deadlines and uids each have an index of their own, so a
//! million waiting rollouts slow nothing down.

mod apply;
mod apply_replay;
mod audit;
mod books;
mod command;
mod decide;
mod draw;
mod event;
mod group;
mod lease;
mod note;
mod overview;
mod replay;
mod settled;
mod shape;
mod snapshot;
mod view;

#[cfg(test)]
mod hook_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;

pub use books::Books;
pub use command::{Command, Draw, LeaseTerms, Refusal, Want};
pub use decide::Events;
pub use event::{Admitted, Event, decode_events, encode_events};
pub use group::{Group, GroupStatus, Rollout, Uid};
pub use lease::{Ending, Lease, LeaseStatus, Pick, Sample};
pub use note::{Generator, GeneratorState};
pub use overview::{LeaseOut, OpenGroup, Paced, Staleness};
pub use settled::Fate;
pub use shape::{Ruling, Shape, ShapedRow};
pub use snapshot::SnapshotError;
pub use view::{LeasedGroup, LeasedRow, PosedGroup, PosedRollout, ReplayStats, SampledRow, Whereabouts};

use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{GroupNo, LeaseNo, Time};
use crate::pipeline::Tally;
use crate::run_config::RunConfig;

/// The state of one run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    config: RunConfig,
    /// The start payload of the run, kept as its writer sent it.
    start: Option<String>,
    /// The weights now being sampled with, if anybody said.
    version: Option<u64>,
    groups: BTreeMap<GroupNo, Group>,
    /// Out, or acked and still possible to rewind.
    leases: BTreeMap<LeaseNo, Lease>,
    /// How recent leases ended, for whoever asks late.
    ended: VecDeque<(LeaseNo, Ending)>,
    /// Steps that can still be rewound over, oldest first.
    commits: Vec<u64>,
    /// The last step whose rollouts are gone for good: no rewind reaches behind it.
    floor: Option<u64>,
    /// What arrived since the last read that was delivered.
    tally: Tally,
    /// Counts reads, so that a group is tallied once between two of them.
    tally_no: u64,
    settled: settled::Settled,
    books: Books,
    next_group: GroupNo,
    next_lease: LeaseNo,
    next_ready: u64,
    /// The largest group size the run ever had.
    group_size_max: usize,
    /// By instance: the round its next group gets, and the groups that still take rollouts.
    instances: HashMap<Uid, Instance, fixed::Hasher>,
    /// What can be sampled, in a run that is sampled.
    replay: Option<Box<replay::Replay>>,
    generator: Option<Generator>,

    // Made from the fields above, never stored.
    uids: HashMap<Uid, GroupNo, fixed::Hasher>,
    ready: BTreeMap<u64, GroupNo>,
    posed: BTreeSet<GroupNo>,
    group_deadlines: BTreeSet<(Time, GroupNo)>,
    lease_deadlines: BTreeSet<(Time, LeaseNo)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Instance {
    next_round: u32,
    /// Rounds that tell nothing of what a generator has finished: those of a named epoch, and those made anew.
    uncounted: u32,
    open: SmallVec<[GroupNo; 1]>,
}

/// Uids are hashes already; hashing them again, or by chance, would buy nothing.
mod fixed {
    use std::hash::BuildHasherDefault;

    pub(super) type Hasher = BuildHasherDefault<TakeFirst>;

    #[derive(Clone, Debug, Default)]
    pub(super) struct TakeFirst(u64);

    impl std::hash::Hasher for TakeFirst {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.write_u64(u64::from(byte));
            }
        }

        fn write_u64(&mut self, word: u64) {
            self.0 ^= word;
        }
    }
}

impl Ledger {
    pub fn new(config: RunConfig) -> Self {
        let mut ledger = Self { group_size_max: config.group_len(), ..Self::default() };
        ledger.configure(config);
        ledger
    }

    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    pub fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }

    pub fn version(&self) -> Option<u64> {
        self.version
    }

    pub fn books(&self) -> &Books {
        &self.books
    }

    pub fn ready_groups(&self) -> usize {
        self.ready.len()
    }

    pub fn open_groups(&self) -> usize {
        self.group_deadlines.len()
    }

    /// Groups that the generator's functions are asked about.
    pub fn posed_groups(&self) -> usize {
        self.posed.len()
    }

    /// The last that was noted of the run's generator, if it ever had one.
    pub fn generator(&self) -> Option<&Generator> {
        self.generator.as_ref()
    }

    pub fn commits(&self) -> &[u64] {
        &self.commits
    }

    /// When something will be due without anybody asking for it.
    pub fn next_deadline(&self) -> Option<Time> {
        let group = self.group_deadlines.first().map(|&(time, _)| time);
        let lease = self.lease_deadlines.first().map(|&(time, _)| time);
        let replay = self.replay.as_deref().and_then(|replay| replay.next_deadline());
        [group, lease, replay].into_iter().flatten().min()
    }
}
