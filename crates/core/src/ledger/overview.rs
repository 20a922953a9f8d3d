//! What somebody who watches a run wants to see of it, at a price that does not grow with what is held.

use std::collections::BTreeMap;

use super::{LeaseStatus, Ledger};
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::replay::Flow;
use crate::run_config::Mode;

/// A group that waits for more rollouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenGroup {
    pub group: GroupNo,
    pub instance: Box<str>,
    /// Rollouts it has, and how many make it full.
    pub len: usize,
    pub size: usize,
    /// When its first rollout came.
    pub opened_at: Time,
    pub touched_at: Time,
    /// When it is used as it is, or dropped, unless more comes.
    pub until: Time,
}

/// A lease that a reader has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOut {
    pub lease: LeaseNo,
    pub reader: Box<str>,
    pub auto: bool,
    /// None for a sample, whose rollouts are drawn one by one.
    pub groups: usize,
    pub rollouts: usize,
    pub granted_at: Time,
    pub until: Time,
}

/// How far the weights that made the held rollouts are behind those of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staleness {
    /// Rollouts by how many versions, or steps of the trainer, they are behind.
    pub behind: BTreeMap<i64, u64>,
    /// Rollouts of which nobody said what made them.
    pub unknown: u64,
    /// Held rollouts that were not looked at, because there are too many.
    pub left_out: u64,
}

/// Whom the limiter of a run that samples has wait at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paced {
    pub writers: bool,
    pub readers: bool,
}

impl Ledger {
    /// The open groups that nothing was written to for the longest time.
    pub fn longest_open(&self, limit: usize) -> Vec<OpenGroup> {
        let groups = self.group_deadlines.iter().take(limit);
        let show = |&(until, no): &(Time, GroupNo)| {
            let group = self.groups.get(&no)?;
            Some(OpenGroup {
                group: no,
                instance: group.instance.clone(),
                len: group.rollouts.len(),
                size: group.size.get() as usize,
                opened_at: group.rollouts.first().map_or(group.touched_at, |rollout| rollout.at),
                touched_at: group.touched_at,
                until,
            })
        };
        groups.filter_map(show).collect()
    }

    /// The leases that are out, those that expire first in front.
    pub fn leases_out_until(&self, limit: usize) -> Vec<LeaseOut> {
        let show = |&(until, no): &(Time, LeaseNo)| {
            let lease = self.leases.get(&no)?;
            let of_groups = || lease.groups.iter().filter_map(|no| self.groups.get(no));
            let drawn = lease.sample.as_ref().map(|sample| sample.picks.len());
            Some(LeaseOut {
                lease: no,
                reader: lease.reader.clone(),
                auto: lease.auto,
                groups: lease.groups.len(),
                rollouts: drawn.unwrap_or_else(|| of_groups().map(|group| group.rollouts.len()).sum()),
                granted_at: lease.granted_at,
                until,
            })
        };
        self.lease_deadlines.iter().take(limit).filter_map(show).collect()
    }

    /// Groups that readers have.
    pub fn groups_out(&self) -> usize {
        let leases = self.lease_deadlines.iter().filter_map(|(_, no)| self.leases.get(no));
        leases
            .filter(|lease| matches!(lease.status, LeaseStatus::Out(_)))
            .map(|lease| lease.groups.len())
            .sum()
    }

    /// Since when the group at the head of the queue is as it is.
    pub fn ready_since(&self) -> Option<Time> {
        let (_, no) = self.ready.first_key_value()?;
        Some(self.groups.get(no)?.touched_at)
    }

    /// How stale the held rollouts are; `None` where nobody said which weights are those of now.
    ///
    /// A run that samples counts all of them. A queue looks at `groups_max` groups at most, those that are read first
    /// before the others.
    pub fn staleness(&self, groups_max: usize) -> Option<Staleness> {
        if let Some(replay) = self.replay.as_deref() {
            return Some(Staleness { behind: replay.pool.ages(), ..Staleness::default() });
        }
        let now = i64::try_from(self.version?).unwrap_or(i64::MAX);
        let mut seen = Staleness::default();
        let mut counted = 0;
        let open = self.group_deadlines.iter().map(|(_, no)| no);
        let held = self.ready.values().chain(&self.posed).chain(open);
        for group in held.take(groups_max).filter_map(|no| self.groups.get(no)) {
            let rollouts = group.rollouts.len() as u64;
            counted += rollouts;
            match group.versions {
                Some((oldest, _)) => {
                    let behind = now.saturating_sub(i64::try_from(oldest).unwrap_or(i64::MAX));
                    *seen.behind.entry(behind).or_default() += rollouts;
                }
                None => seen.unknown += rollouts,
            }
        }
        seen.left_out = self.books.held.saturating_sub(counted);
        Some(seen)
    }

    /// What the limiter of a run that samples counts.
    pub fn flow(&self) -> Option<Flow> {
        self.replay.as_deref().map(|replay| replay.flow)
    }

    /// Rollouts that can be drawn, in a run that samples.
    pub fn pool_size(&self) -> Option<usize> {
        self.replay.as_deref().map(|replay| replay.pool.size())
    }

    pub fn paced(&self) -> Paced {
        let (Some(flow), Mode::Replay, Ok(limiter)) = (self.flow(), self.config.mode, self.config.limiter())
        else {
            return Paced::default();
        };
        Paced { writers: !limiter.can_insert(flow, 1), readers: !limiter.can_sample(flow, 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Yard, admission};
    use super::super::{Command, Want};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_group_that_waits_longest_is_told_first() {
        let mut yard = Yard::new(json!({"group_size": 2, "group_timeout_seconds": 60}));
        yard.admit("a-0", "a", 0.0);
        yard.now = Time(5_000);
        yard.admit("b-0", "b", 0.0);
        let open = yard.ledger.longest_open(10);
        let told: Vec<_> =
            open.iter().map(|open| (&*open.instance, open.len, open.size, open.until.0)).collect();
        assert_eq!(told, [("a", 1, 2, 61_000), ("b", 1, 2, 65_000)]);
        assert_eq!((open[1].opened_at, open[1].touched_at), (Time(5_000), Time(5_000)));
        assert_eq!(yard.ledger.longest_open(1).len(), 1);
    }

    #[test]
    fn leases_are_told_by_when_they_expire_until_they_are_acked() {
        let mut yard = Yard::new(json!({"group_size": 2}));
        for instance in ["a", "b", "c"] {
            yard.fill(instance);
        }
        assert_eq!(yard.ledger.ready_since(), Some(Time(1_000)));
        let (first, _) = yard.lease(Want::Groups(2)).unwrap();
        yard.now = Time(3_000);
        let (second, _) = yard.lease(Want::Groups(1)).unwrap();
        let out = yard.ledger.leases_out_until(10);
        let told: Vec<_> = out.iter().map(|out| (out.lease, out.groups, out.rollouts)).collect();
        assert_eq!(told, [(first, 2, 4), (second, 1, 2)]);
        assert_eq!((yard.ledger.groups_out(), yard.ledger.ready_since()), (3, None));
        yard.run(Command::Ack { lease: first }).unwrap();
        assert_eq!((yard.ledger.groups_out(), yard.ledger.leases_out_until(10).len()), (1, 1));
    }

    #[test]
    fn staleness_is_counted_from_the_oldest_weights_of_each_group() {
        let mut yard = Yard::new(json!({"group_size": 2, "version_spread_max": 1}));
        assert_eq!(yard.ledger.staleness(10), None);
        for (uid, instance, version) in
            [("a0", "a", Some(3)), ("a1", "a", Some(4)), ("b0", "b", Some(5)), ("c0", "c", None)]
        {
            yard.run(admission(uid, instance, f64::from(uid == "a1"), version, None)).unwrap();
        }
        yard.run(Command::SetVersion { version: 5 }).unwrap();
        let behind = |seen: &Staleness| seen.behind.clone().into_iter().collect::<Vec<_>>();
        let all = yard.ledger.staleness(10).unwrap();
        assert_eq!((behind(&all), all.unknown, all.left_out), (vec![(0, 1), (2, 2)], 1, 0));
        // The ready group stands in front of the open ones.
        let one = yard.ledger.staleness(1).unwrap();
        assert_eq!((behind(&one), one.unknown, one.left_out), (vec![(2, 2)], 0, 2));
    }

    #[test]
    fn a_limiter_says_whom_it_has_wait() {
        let mut yard =
            Yard::new(json!({"mode": "replay", "group_size": 1, "limiter": "queue", "limiter_size": 2}));
        assert_eq!(yard.ledger.paced(), Paced { writers: false, readers: true });
        for uid in ["a", "b"] {
            yard.run(admission(uid, uid, 1.0, Some(0), None)).unwrap();
        }
        assert_eq!(yard.ledger.paced(), Paced { writers: true, readers: false });
        assert_eq!(
            (yard.ledger.pool_size(), yard.ledger.flow().map(|flow| flow.inserted)),
            (Some(2), Some(2))
        );
        assert_eq!(yard.ledger.staleness(1).unwrap().behind.into_iter().collect::<Vec<_>>(), [(0, 2)]);
        assert_eq!(Yard::new(json!({})).ledger.paced(), Paced::default());
    }
}
