//! Questions to the ledger that change nothing.

use super::command::Want;
use super::group::{Group, GroupStatus, Rollout, Uid};
use super::lease::{Ending, Lease, Pick};
use super::replay::Column;
use super::settled::Fate;
use super::{LeaseStatus, Ledger, RunConfig};
use crate::ids::{GroupNo, LeaseNo, Place};
use crate::pipeline::{MetaInfo, Row, Stage};
use crate::replay::{Census, Flow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group as a reader gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct LeasedGroup {
    pub group: GroupNo,
    pub instance: Box<str>,
    pub round: u32,
    pub versions: Option<(u64, u64)>,
    pub rows: Vec<LeasedRow>,
}

/// One row to deliver: what the pipeline made of a rollout, and where its bytes are.
#[derive(Clone, Debug, PartialEq)]
pub struct LeasedRow {
    pub uid: Uid,
    pub row: Row,
    pub raw_reward: f64,
    pub place: Place,
    pub size_bytes: u32,
    /// What a generator's function changed besides the reward.
    pub changes: Option<Arc<str>>,
}

/// A group that the generator's functions are asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct PosedGroup {
    pub group: GroupNo,
    pub instance: Box<str>,
    pub stage: Stage,
    /// How many rollouts it needs to be finished, in its stage.
    pub min_size: usize,
    pub group_size: usize,
    /// Rollouts that must pass the filter.
    pub valid_items: usize,
    /// To be named in the ruling: it is void if the group has changed since.
    pub seen: u64,
    pub rollouts: Vec<PosedRollout>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PosedRollout {
    pub uid: Uid,
    pub reward: f64,
    pub place: Place,
    pub size_bytes: u32,
}

/// One rollout to deliver of those that were drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledRow {
    pub uid: Uid,
    pub group: GroupNo,
    pub place: Place,
    pub size_bytes: u32,
    pub advantage: f64,
    /// Times it had been drawn, this one included.
    pub used: u32,
    pub version: u64,
}

/// The pool of a run that samples, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayStats {
    /// The trainer's.
    pub step: i64,
    pub size: usize,
    pub env_sizes: BTreeMap<String, usize>,
    pub flow: Flow,
    /// Batches drawn.
    pub draws: u64,
    /// Rollouts that can be drawn, by how many steps their weights are behind the trainer.
    pub ages: BTreeMap<i64, u64>,
    /// When the oldest of them was made.
    pub oldest_timestamp: Option<f64>,
    pub census: Census,
}

/// Where a rollout is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whereabouts<'a> {
    Kept { no: GroupNo, group: &'a Group, rollout: &'a Rollout, lease: Option<(LeaseNo, LeaseStatus)> },
    Settled { fate: Fate, digest: u64 },
}

impl Ledger {
    pub fn whereabouts(&self, uid: &str) -> Option<Whereabouts<'_>> {
        self.whereabouts_of(Uid::of(uid))
    }

    pub(super) fn whereabouts_of(&self, uid: Uid) -> Option<Whereabouts<'_>> {
        let Some(no) = self.uids.get(&uid) else {
            return self.settled.get(uid).map(|(fate, digest)| Whereabouts::Settled { fate, digest });
        };
        let group = self.groups.get(no)?;
        let rollout = group.rollouts.iter().find(|rollout| rollout.uid == uid)?;
        let lease = match group.status {
            GroupStatus::Leased(lease, _) => self.leases.get(&lease).map(|known| (lease, known.status)),
            GroupStatus::Pooled => self.lease_of(uid),
            GroupStatus::Open | GroupStatus::Ready(_) | GroupStatus::Posed(_) => None,
        };
        Some(Whereabouts::Kept { no: *no, group, rollout, lease })
    }

    /// The lease that has a rollout of the pool: one that is out, or the last one acked if it is used up.
    fn lease_of(&self, uid: Uid) -> Option<(LeaseNo, LeaseStatus)> {
        let column = self.replay.as_deref()?.column(uid)?;
        let has =
            |lease: &Lease| lease.sample.iter().flat_map(|sample| &sample.picks).any(|pick| pick.uid == uid);
        let holders = self.leases.iter().rev().filter(|(_, lease)| has(lease));
        let mut holders = holders.map(|(no, lease)| (*no, lease.status));
        match column {
            Column::Held => None,
            Column::Leased => holders.find(|(_, status)| matches!(status, LeaseStatus::Out(_))),
            Column::Trained => holders.next(),
        }
    }

    /// How often a rollout of a run that samples has been drawn and not given back.
    pub fn usage(&self, uid: &str) -> Option<u32> {
        Some(self.replay.as_deref()?.members.get(&Uid::of(uid))?.used())
    }

    /// What the reader of a sample gets, in the order it was drawn; `None` for a lease that is none or is not kept.
    pub fn sampled_rows(&self, lease: LeaseNo) -> Option<Vec<SampledRow>> {
        let replay = self.replay.as_deref()?;
        let sample = self.leases.get(&lease)?.sample.as_ref()?;
        let row = |pick: &Pick| {
            let member = replay.members.get(&pick.uid)?;
            let rollouts = &self.groups.get(&pick.group)?.rollouts;
            let rollout = rollouts.iter().find(|rollout| rollout.uid == pick.uid)?;
            Some(SampledRow {
                uid: pick.uid,
                group: pick.group,
                place: rollout.place,
                size_bytes: rollout.size_bytes,
                advantage: f64::from(member.advantage),
                used: pick.used,
                version: member.version,
            })
        };
        let mut rows: Vec<SampledRow> = sample.picks.iter().filter_map(row).collect();
        let mut advantages: Vec<f64> = rows.iter().map(|row| row.advantage).collect();
        self.config.advantage.over_batch(&mut advantages);
        for (row, advantage) in rows.iter_mut().zip(advantages) {
            row.advantage = advantage;
        }
        Some(rows)
    }

    /// The trainer's step, in a run that samples.
    pub fn step(&self) -> Option<i64> {
        self.replay.as_deref().map(|replay| replay.pool.step())
    }

    /// What can be sampled, how old it is, and what was drawn of what was made.
    pub fn replay_stats(&self) -> Option<ReplayStats> {
        let replay = self.replay.as_deref()?;
        Some(ReplayStats {
            step: replay.pool.step(),
            size: replay.pool.size(),
            env_sizes: replay.pool.env_sizes().map(|(env, size)| (env.to_owned(), size)).collect(),
            flow: replay.flow,
            draws: replay.draws,
            ages: replay.pool.ages(),
            oldest_timestamp: replay.pool.oldest_timestamp(),
            census: replay.census.clone(),
        })
    }

    /// How many groups of an instance need not be made again by a generator that names no epochs: those it finished,
    /// whatever became of them.
    pub fn rounds_finished(&self, instance: &str) -> u32 {
        let Some(known) = self.instances.get(&Uid::of(instance)) else { return 0 };
        let open = known.open.iter().filter_map(|no| self.groups.get(no)).filter(|group| group.is_remade());
        let open = u32::try_from(open.count()).unwrap_or(u32::MAX);
        known.next_round.saturating_sub(known.uncounted).saturating_sub(open)
    }

    /// How many rollouts the group of `uid` has now.
    pub fn group_size_now(&self, uid: &str) -> usize {
        let group = self.uids.get(&Uid::of(uid)).and_then(|no| self.groups.get(no));
        group.map_or(0, |group| group.rollouts.len())
    }

    /// What the reader of a lease gets. A lease that is not kept gives nothing.
    pub fn leased_groups(&self, lease: LeaseNo) -> Vec<LeasedGroup> {
        let groups = self.leases.get(&lease).map(|lease| lease.groups.as_slice()).unwrap_or_default();
        groups
            .iter()
            .filter_map(|no| {
                let group = self.groups.get(no)?;
                // It passed when it was leased; knobs turned since then must not take rows from a reader.
                let rows = group.rows(&self.config).unwrap_or_default();
                Some(LeasedGroup::of(*no, group, &rows))
            })
            .collect()
    }

    /// The groups that the generator's functions are asked about, the longest waiting first, leaving out those that
    /// `skip` knows.
    pub fn posed(&self, limit: usize, skip: impl Fn(GroupNo, u64) -> bool) -> Vec<PosedGroup> {
        let groups = self.posed.iter().filter_map(|no| Some((*no, self.groups.get(no)?)));
        let wanted = groups.filter(|(no, group)| !skip(*no, group.fingerprint()));
        wanted.take(limit).filter_map(|(no, group)| PosedGroup::of(no, group, &self.config)).collect()
    }

    /// What a read would return now, and what it would be told.
    pub fn peek(&self, want: Want) -> Option<Vec<LeasedGroup>> {
        let mut groups = Vec::new();
        let enough = self.pick(want, |no, group, outcome| {
            groups.extend(outcome.ok().map(|rows| LeasedGroup::of(no, group, &rows)));
        });
        enough.then_some(groups)
    }

    /// The statistics that went out with a lease.
    pub fn lease_meta(&self, lease: LeaseNo) -> Option<MetaInfo> {
        self.config.meta.info(&self.leases.get(&lease)?.tally)
    }

    /// The statistics that the next read will be told.
    pub fn meta(&self) -> Option<MetaInfo> {
        self.config.meta.info(&self.tally)
    }

    pub fn lease(&self, no: LeaseNo) -> Option<&Lease> {
        self.leases.get(&no)
    }

    pub fn leases(&self) -> impl Iterator<Item = (LeaseNo, &Lease)> {
        self.leases.iter().map(|(no, lease)| (*no, lease))
    }

    /// Leases that readers have now.
    pub fn leases_out(&self) -> usize {
        self.lease_deadlines.len()
    }

    pub fn lease_ending(&self, no: LeaseNo) -> Option<Ending> {
        self.ended.iter().rev().find(|(ended, _)| *ended == no).map(|(_, ending)| *ending)
    }

    pub fn groups(&self) -> impl Iterator<Item = (GroupNo, &Group)> {
        self.groups.iter().map(|(no, group)| (*no, group))
    }

    /// Every payload that must stay readable.
    pub fn places(&self) -> impl Iterator<Item = (Place, u32)> + '_ {
        let rollouts = self.groups.values().flat_map(|group| &group.rollouts);
        rollouts.map(|rollout| (rollout.place, rollout.size_bytes))
    }
}

impl PosedGroup {
    fn of(no: GroupNo, group: &Group, config: &RunConfig) -> Option<Self> {
        let GroupStatus::Posed(stage) = group.status else { return None };
        let rules = group.rules(config);
        let rollouts = group.rollouts.iter().map(|rollout| PosedRollout {
            uid: rollout.uid,
            reward: rollout.reward,
            place: rollout.place,
            size_bytes: rollout.size_bytes,
        });
        Some(Self {
            group: no,
            instance: group.instance.clone(),
            stage,
            min_size: match stage {
                Stage::Growing | Stage::Full => rules.finished_size(),
                Stage::TimedOut | Stage::Closed => rules.timeout_size(),
            },
            group_size: rules.group_len(),
            valid_items: rules.valid_items(),
            seen: group.fingerprint(),
            rollouts: rollouts.collect(),
        })
    }
}

impl LeasedGroup {
    fn of(no: GroupNo, group: &Group, rows: &[Row]) -> Self {
        let changes = |nth: usize| group.shape.as_ref()?.rows.get(nth)?.changes.clone();
        let show = |(nth, row): (usize, &Row)| {
            let rollout = group.rollouts.get(row.member)?;
            Some(LeasedRow {
                uid: rollout.uid,
                row: *row,
                raw_reward: rollout.reward,
                place: rollout.place,
                size_bytes: rollout.size_bytes,
                changes: changes(nth),
            })
        };
        Self {
            group: no,
            instance: group.instance.clone(),
            round: group.round,
            versions: group.versions,
            rows: rows.iter().enumerate().filter_map(show).collect(),
        }
    }
}
