//! Counts everything again, the slow way, and compares.

use super::group::Group;
use super::replay::Column;
use super::{GroupStatus, LeaseStatus, Ledger};
use crate::replay::Flow;

impl Ledger {
    /// What is wrong with the books, if anything. Tests call it after every step.
    pub fn audit(&self) -> Result<(), String> {
        self.audit_books()?;
        self.audit_groups()?;
        self.audit_indexes()
    }

    fn audit_books(&self) -> Result<(), String> {
        let mut counted = super::Books {
            admitted: self.books.admitted,
            dropped: self.books.dropped.clone(),
            ..Default::default()
        };
        for (no, group) in &self.groups {
            if group.status == GroupStatus::Pooled {
                self.audit_pooled(group, &mut counted)?;
                continue;
            }
            let (count, bytes) = (group.rollouts.len() as u64, group.bytes());
            let status = match group.status {
                GroupStatus::Leased(lease, _) => Some(
                    self.leases
                        .get(&lease)
                        .ok_or_else(|| format!("group {no} is in lost lease {lease}"))?
                        .status,
                ),
                GroupStatus::Open | GroupStatus::Ready(_) | GroupStatus::Posed(_) | GroupStatus::Pooled => {
                    None
                }
            };
            let (column, column_bytes) = match status {
                None => (&mut counted.held, &mut counted.held_bytes),
                Some(LeaseStatus::Out(_)) => (&mut counted.leased, &mut counted.leased_bytes),
                Some(LeaseStatus::Acked(_)) => (&mut counted.retained, &mut counted.retained_bytes),
            };
            *column += count;
            *column_bytes += bytes;
        }
        // Trained is what was kept for a rewind and what is gone; only the first can be counted again.
        counted.trained = self.books.trained;
        if counted != self.books {
            return Err(format!("counted {counted:?}, booked {:?}", self.books));
        }
        if !self.books.balanced() || self.books.retained > self.books.trained {
            return Err(format!("the books do not balance: {:?}", self.books));
        }
        Ok(())
    }

    /// Counts the rollouts of a group in the pool by what their leases say of them.
    fn audit_pooled(&self, group: &Group, counted: &mut super::Books) -> Result<(), String> {
        let Some(replay) = self.replay.as_deref() else {
            return Err("a pooled group without a pool".to_owned());
        };
        for rollout in &group.rollouts {
            let Some(member) = replay.members.get(&rollout.uid) else {
                return Err("a pooled rollout is no member".to_owned());
            };
            let has = |lease: &&super::Lease| {
                lease.sample.iter().flat_map(|sample| &sample.picks).any(|pick| pick.uid == rollout.uid)
            };
            let pending = self.leases.values().filter(has).count() as u32;
            let out = self.leases.values().filter(has).filter(|l| matches!(l.status, LeaseStatus::Out(_)));
            if (member.pending, member.out) != (pending, out.count() as u32) {
                return Err(format!("a member says {member:?}, its leases {pending} in all"));
            }
            let entry = member.entry.and_then(|id| replay.pool.get(id));
            if entry.is_some_and(|entry| entry.used != member.used() || entry.item != rollout.uid) {
                return Err(format!("the pool and {member:?} do not agree"));
            }
            let (column, bytes) = match replay.column(rollout.uid) {
                Some(Column::Leased) => (&mut counted.leased, &mut counted.leased_bytes),
                Some(Column::Trained) => (&mut counted.retained, &mut counted.retained_bytes),
                _ => (&mut counted.held, &mut counted.held_bytes),
            };
            *column += 1;
            *bytes += u64::from(rollout.size_bytes);
            if replay.fate(rollout.uid).is_some() {
                return Err(format!("{member:?} should have been settled"));
            }
        }
        Ok(())
    }

    fn audit_groups(&self) -> Result<(), String> {
        for (no, group) in &self.groups {
            let (count, size) = (group.rollouts.len(), group.size.get() as usize);
            if count > size || (count == size && !group.closed) {
                return Err(format!("group {no} has {count} rollouts of {size}, closed: {}", group.closed));
            }
            for rollout in &group.rollouts {
                if self.uids.get(&rollout.uid) != Some(no) {
                    return Err(format!("a rollout of group {no} is indexed elsewhere"));
                }
            }
        }
        if let Some(replay) = self.replay.as_deref() {
            let kept: usize = self.groups.values().map(|group| group.rollouts.len()).sum();
            if replay.members.len() != kept || replay.pool.entries().count() > kept {
                return Err(format!("{} members of {kept} rollouts", replay.members.len()));
            }
            let (Flow { inserted, removed, .. }, members) = (replay.flow, replay.members.len() as u64);
            if inserted - removed != members {
                return Err(format!("{inserted} inserted and {removed} removed, but {members} members"));
            }
        }
        for (no, lease) in &self.leases {
            for group in &lease.groups {
                let status = self.groups.get(group).map(|group| group.status);
                if !matches!(status, Some(GroupStatus::Leased(holder, _)) if holder == *no) {
                    return Err(format!("lease {no} names group {group}, which is {status:?}"));
                }
            }
        }
        Ok(())
    }

    fn audit_indexes(&self) -> Result<(), String> {
        let mut rebuilt = self.clone();
        rebuilt.index();
        let pairs = [
            ("uids", rebuilt.uids == self.uids),
            ("ready", rebuilt.ready == self.ready),
            ("posed", rebuilt.posed == self.posed),
            ("group deadlines", rebuilt.group_deadlines == self.group_deadlines),
            ("lease deadlines", rebuilt.lease_deadlines == self.lease_deadlines),
            ("instances", rebuilt.instances == self.instances),
        ];
        match pairs.iter().find(|(_, same)| !same) {
            Some((name, _)) => Err(format!("the index of {name} is not what the groups say")),
            None => Ok(()),
        }
    }
}
