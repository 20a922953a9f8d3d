//! The whole ledger as bytes, so that recovery need not replay a run from its first day.
//!
//! Same state, same bytes: everything is written in a fixed order. Indexes are left out and made anew.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::books::Books;
use super::group::{Group, GroupStatus, Uid};
use super::lease::{Ending, Lease, LeaseStatus};
use super::note::Generator;
use super::replay::{Mark, Member, Replay};
use super::settled::Fate;
use super::{Ledger, RunConfig, Tally};
use crate::ids::{GroupNo, LeaseNo};
use crate::replay::{Census, Flow, Rules};

const ENCODING: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("a snapshot is encoded in version {found:?}; this build reads {ENCODING}")]
    Version { found: Option<u8> },
    #[error("a snapshot cannot be read: {0}")]
    Damaged(#[from] rmp_serde::decode::Error),
}

#[derive(Serialize, Deserialize)]
struct Snapshot<'a> {
    config: Cow<'a, RunConfig>,
    start: Cow<'a, Option<String>>,
    version: Option<u64>,
    groups: Cow<'a, BTreeMap<GroupNo, Group>>,
    leases: Cow<'a, BTreeMap<LeaseNo, Lease>>,
    ended: Cow<'a, VecDeque<(LeaseNo, Ending)>>,
    commits: Cow<'a, [u64]>,
    floor: Option<u64>,
    tally: Cow<'a, Tally>,
    tally_no: u64,
    books: Cow<'a, Books>,
    next_group: GroupNo,
    next_lease: LeaseNo,
    next_ready: u64,
    group_size_max: usize,
    rounds: Vec<(Uid, u32)>,
    settled: Vec<(Uid, Fate, u64)>,
    #[serde(default)]
    replay: Option<Sampler>,
    #[serde(default)]
    generator: Cow<'a, Option<Generator>>,
    /// Of the instances that have any.
    #[serde(default)]
    uncounted: Vec<(Uid, u32)>,
}

/// The pool of a run that samples: its members in an order that gives the same pool again.
#[derive(Serialize, Deserialize)]
struct Sampler {
    step: i64,
    draws: u64,
    marks: Vec<Mark>,
    flow: Flow,
    census: Census,
    pooled: Vec<(Uid, Member)>,
    /// Those whose group is open, or who left the pool and are still remembered by leases.
    others: Vec<(Uid, Member)>,
}

impl Sampler {
    fn of(replay: &Replay) -> Self {
        let order = replay.order();
        let pooled = order.iter().filter_map(|uid| Some((*uid, replay.members.get(uid)?.clone()))).collect();
        let mut others: Vec<(Uid, Member)> = replay
            .members
            .iter()
            .filter(|(_, member)| member.entry.is_none())
            .map(|(uid, member)| (*uid, member.clone()))
            .collect();
        others.sort_unstable_by_key(|(uid, _)| *uid);
        let Replay { draws, flow, .. } = *replay;
        Self {
            step: replay.pool.step(),
            draws,
            marks: replay.marks.clone(),
            flow,
            census: replay.census.clone(),
            pooled,
            others,
        }
    }

    fn restore(self, rules: Rules) -> Replay {
        let order: Vec<Uid> = self.pooled.iter().map(|(uid, _)| *uid).collect();
        let mut replay = Replay::new(rules.clone());
        replay.draws = self.draws;
        replay.marks = self.marks;
        replay.flow = self.flow;
        replay.census = self.census;
        replay.members.extend(self.pooled.into_iter().chain(self.others));
        replay.pool.set_step(self.step);
        replay.index(rules, &order);
        replay
    }
}

impl Ledger {
    pub fn snapshot(&self) -> Vec<u8> {
        let mut rounds: Vec<(Uid, u32)> =
            self.instances.iter().map(|(uid, instance)| (*uid, instance.next_round)).collect();
        rounds.sort_unstable();
        let counts = self.instances.iter().map(|(uid, instance)| (*uid, instance.uncounted));
        let mut uncounted: Vec<(Uid, u32)> = counts.filter(|(_, count)| *count > 0).collect();
        uncounted.sort_unstable();
        let snapshot = Snapshot {
            config: Cow::Borrowed(&self.config),
            start: Cow::Borrowed(&self.start),
            version: self.version,
            groups: Cow::Borrowed(&self.groups),
            leases: Cow::Borrowed(&self.leases),
            ended: Cow::Borrowed(&self.ended),
            commits: Cow::Borrowed(&self.commits),
            floor: self.floor,
            tally: Cow::Borrowed(&self.tally),
            tally_no: self.tally_no,
            books: Cow::Borrowed(&self.books),
            next_group: self.next_group,
            next_lease: self.next_lease,
            next_ready: self.next_ready,
            group_size_max: self.group_size_max,
            rounds,
            settled: self.settled.iter().collect(),
            replay: self.replay.as_deref().map(Sampler::of),
            generator: Cow::Borrowed(&self.generator),
            uncounted,
        };
        let mut bytes = vec![ENCODING];
        #[expect(clippy::expect_used, reason = "writing plain data into memory has no way to fail")]
        rmp_serde::encode::write(&mut bytes, &snapshot).expect("a ledger is plain data");
        bytes
    }

    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let body = match bytes.split_first() {
            Some((&ENCODING, body)) => body,
            other => return Err(SnapshotError::Version { found: other.map(|(version, _)| *version) }),
        };
        let stored: Snapshot<'_> = rmp_serde::from_slice(body)?;
        let mut ledger = Self {
            config: stored.config.into_owned(),
            start: stored.start.into_owned(),
            version: stored.version,
            groups: stored.groups.into_owned(),
            leases: stored.leases.into_owned(),
            ended: stored.ended.into_owned(),
            commits: stored.commits.into_owned(),
            floor: stored.floor,
            tally: stored.tally.into_owned(),
            tally_no: stored.tally_no,
            books: stored.books.into_owned(),
            next_group: stored.next_group,
            next_lease: stored.next_lease,
            next_ready: stored.next_ready,
            group_size_max: stored.group_size_max,
            generator: stored.generator.into_owned(),
            ..Self::default()
        };
        let rules = ledger.config.rules();
        ledger.replay = stored.replay.map(|sampler| Box::new(sampler.restore(rules)));
        for (uid, fate, digest) in stored.settled {
            ledger.settled.put(uid, fate, digest);
        }
        for (uid, next_round) in stored.rounds {
            ledger.instances.entry(uid).or_default().next_round = next_round;
        }
        for (uid, uncounted) in stored.uncounted {
            ledger.instances.entry(uid).or_default().uncounted = uncounted;
        }
        ledger.index();
        Ok(ledger)
    }

    /// Makes every index from what is stored.
    pub(super) fn index(&mut self) {
        self.uids.clear();
        self.ready.clear();
        self.posed.clear();
        for instance in self.instances.values_mut() {
            instance.open.clear();
        }
        for (no, group) in &self.groups {
            self.uids.extend(group.rollouts.iter().map(|rollout| (rollout.uid, *no)));
            match group.status {
                GroupStatus::Ready(order) => drop(self.ready.insert(order, *no)),
                GroupStatus::Posed(_) => drop(self.posed.insert(*no)),
                GroupStatus::Open | GroupStatus::Leased(..) | GroupStatus::Pooled => {}
            }
            if !group.closed
                && let Some(instance) = self.instances.get_mut(&Uid::of(&group.instance))
            {
                instance.open.push(*no);
            }
        }
        self.lease_deadlines = self
            .leases
            .iter()
            .filter_map(|(no, lease)| match lease.status {
                LeaseStatus::Out(until) => Some((until, *no)),
                LeaseStatus::Acked(_) => None,
            })
            .collect();
        self.index_deadlines();
    }
}
