//! Takes an event into the ledger. Cannot fail: what could go wrong was decided before.
//!
//! An event that names something the ledger does not know changes nothing; [`Ledger::decide`] makes no such
//! events, and a log that held one would show in [`Ledger::audit`].

use super::event::{Admitted, Event};
use super::group::{Group, GroupStatus, Rollout, Uid};
use super::lease::{Ending, Lease, LeaseStatus, Sample};
use super::note::Generator;
use super::replay::Use;
use super::settled::Fate;
use super::{Ledger, Time};
use crate::ids::{GroupNo, LeaseNo, Place};
use crate::pipeline::{DropReason, Stage};

/// Ended leases whose story is remembered.
const ENDED_REMEMBERED: usize = 10_000;

impl Ledger {
    /// Takes in `event`, whose payload, if it has one, is at `place` in the log.
    ///
    /// Payloads that nobody needs any more are added to `freed`.
    pub fn apply(&mut self, event: &Event, place: Place, freed: &mut Vec<(Place, u32)>) {
        match event {
            Event::Configured { config, start, .. } => {
                self.configure((**config).clone());
                self.pose_by_config();
                if start.is_some() {
                    self.start.clone_from(start);
                }
                self.index_deadlines();
            }
            Event::Admitted(admitted) => self.admit(admitted, place),
            Event::GroupReady { group, order, closed, .. } => self.make_ready(*group, *order, *closed),
            Event::GroupPosed { group, stage, .. } => self.pose(*group, *stage),
            Event::GroupWaits { group, .. } => self.reopen(*group),
            Event::GroupShaped { group, order, shape, .. } => {
                self.group_size_max = self.group_size_max.max(shape.rows.len());
                if let Some(known) = self.groups.get_mut(group) {
                    known.shape = Some(shape.clone());
                }
                self.make_ready(*group, *order, false);
            }
            Event::GroupDropped { group, reason, .. } => self.drop_group(*group, *reason, freed),
            Event::RolloutDropped { group, uid, reason, .. } => {
                self.drop_rollout(*group, *uid, *reason, freed)
            }
            Event::Leased { at, lease, groups, until, reader, auto } => {
                self.leases.insert(
                    *lease,
                    Lease {
                        groups: groups.clone(),
                        status: LeaseStatus::Out(*until),
                        reader: reader.as_str().into(),
                        granted_at: *at,
                        auto: *auto,
                        tally: std::mem::take(&mut self.tally),
                        sample: None,
                    },
                );
                self.grant(*lease, *until);
                self.hand_out(*lease, groups);
            }
            Event::Pooled { group, members, .. } => self.pool(*group, members),
            Event::StepSet { step, .. } => {
                if let Some(replay) = &mut self.replay {
                    replay.pool.set_step(i64::try_from(*step).unwrap_or(i64::MAX));
                }
            }
            Event::Sampled { at, lease, picks, step, draw, until, reader } => {
                let sample = Sample { picks: picks.clone(), step: *step, draw: *draw };
                self.draw(&sample);
                self.leases.insert(
                    *lease,
                    Lease {
                        groups: Vec::new(),
                        status: LeaseStatus::Out(*until),
                        reader: reader.as_str().into(),
                        granted_at: *at,
                        auto: false,
                        tally: std::mem::take(&mut self.tally),
                        sample: Some(sample),
                    },
                );
                self.grant(*lease, *until);
            }
            Event::Extended { lease, until, .. } => {
                if let Some(known) = self.leases.get_mut(lease)
                    && let LeaseStatus::Out(old) = known.status
                {
                    known.status = LeaseStatus::Out(*until);
                    self.lease_deadlines.remove(&(old, *lease));
                    self.lease_deadlines.insert((*until, *lease));
                }
            }
            Event::Acked { lease, last, .. } => self.ack(*lease, *last, freed),
            Event::Returned { lease, expired, .. } => {
                self.put_back(*lease, if *expired { Ending::Expired } else { Ending::Returned }, freed);
            }
            Event::Committed { step, leases, .. } => self.commit(*step, leases, freed),
            Event::Rewound { step, .. } => self.rewind(Some(*step), freed),
            Event::RewoundToStart { .. } => self.rewind(None, freed),
            Event::Noted { at, state, told } => {
                if let Some(state) = *state {
                    self.generator = Some(Generator { state, at: *at, told: told.as_str().into() });
                }
            }
            Event::VersionSet { version, .. } => self.version = Some(*version),
            Event::Relocated { group, uid } => {
                let rollouts = self.groups.get_mut(group).map(|group| &mut group.rollouts);
                if let Some(rollout) = rollouts.and_then(|all| all.iter_mut().find(|r| r.uid == *uid)) {
                    freed.push((rollout.place, rollout.size_bytes));
                    rollout.place = place;
                } else {
                    // It left while it was being moved: the copy is of no use either.
                    freed.push((place, 0));
                }
            }
        }
    }

    fn grant(&mut self, lease: LeaseNo, until: Time) {
        self.tally_no += 1;
        self.next_lease = LeaseNo(lease.0 + 1);
        self.lease_deadlines.insert((until, lease));
    }

    fn admit(&mut self, new: &Admitted, place: Place) {
        let uid = Uid::of(&new.uid);
        if let (Some(replay), Some(origin)) = (&mut self.replay, &new.origin) {
            replay.admit(uid, new, origin);
        }
        let size = new.origin.as_ref().and_then(|origin| origin.group_size).unwrap_or(self.config.group_size);
        self.group_size_max = self.group_size_max.max(size.get() as usize);
        let instance = self.instances.entry(Uid::of(&new.instance)).or_default();
        let group = self.groups.entry(new.group).or_insert_with(|| {
            instance.next_round = new.round + 1;
            instance.uncounted += u32::from(new.epoch.is_some());
            instance.open.push(new.group);
            self.next_group = GroupNo(new.group.0 + 1);
            Group {
                instance: new.instance.as_str().into(),
                round: new.round,
                size,
                epoch: new.epoch,
                versions: None,
                status: GroupStatus::Open,
                closed: false,
                touched_at: new.at,
                // One less than now, so that the tally below counts the group.
                tally_no: self.tally_no.wrapping_sub(1),
                rollouts: Vec::with_capacity((size.get() as usize).min(64)),
                shape: None,
            }
        });
        group.rollouts.push(Rollout {
            uid,
            place,
            size_bytes: new.size_bytes,
            answered: new.answered,
            reward: new.reward,
            digest: new.digest,
            at: new.at,
        });
        group.versions = match (group.versions, new.version) {
            (Some((oldest, newest)), Some(version)) => Some((oldest.min(version), newest.max(version))),
            (None, Some(version)) => Some((version, version)),
            (known, None) => known,
        };
        if group.status == GroupStatus::Open {
            let secs = self.config.group_timeout_seconds;
            self.group_deadlines.remove(&(group.touched_at.after_secs(secs), new.group));
            self.group_deadlines.insert((new.at.after_secs(secs), new.group));
        }
        group.touched_at = new.at;
        let first_since_read = group.tally_no != self.tally_no;
        group.tally_no = self.tally_no;
        let full = group.rollouts.len() >= group.size.get() as usize;
        self.tally.add(new.reward, first_since_read);
        self.uids.insert(uid, new.group);
        self.books.admitted += 1;
        self.books.held += 1;
        self.books.held_bytes += u64::from(new.size_bytes);
        if full {
            self.close(new.group);
        }
    }

    /// No rollout joins this group any more.
    pub(super) fn close(&mut self, no: GroupNo) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        if std::mem::replace(&mut group.closed, true) {
            return;
        }
        if let Some(instance) = self.instances.get_mut(&Uid::of(&group.instance)) {
            instance.open.retain(|open| *open != no);
        }
    }

    fn make_ready(&mut self, no: GroupNo, order: u64, closed: bool) {
        if let Some(group) = self.groups.get_mut(&no) {
            if group.status == GroupStatus::Open {
                let deadline = group.touched_at.after_secs(self.config.group_timeout_seconds);
                self.group_deadlines.remove(&(deadline, no));
            }
            if matches!(group.status, GroupStatus::Open | GroupStatus::Posed(_)) {
                self.posed.remove(&no);
                self.tally.finish(&group.instance);
            }
            group.status = GroupStatus::Ready(order);
            self.ready.insert(order, no);
            self.next_ready = self.next_ready.max(order + 1);
        }
        if closed {
            self.close(no);
        }
    }

    /// The group waits for what the generator's functions make of it, and for nothing else.
    fn pose(&mut self, no: GroupNo, stage: Stage) {
        if stage != Stage::Growing {
            self.close(no);
        }
        let Some(group) = self.groups.get_mut(&no) else { return };
        group.shape = None;
        let (status, touched_at) = (group.status, group.touched_at);
        group.status = GroupStatus::Posed(stage);
        self.unindex(no, status, touched_at);
        self.posed.insert(no);
    }

    fn reopen(&mut self, no: GroupNo) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        if self.posed.remove(&no) {
            group.status = GroupStatus::Open;
            let deadline = group.touched_at.after_secs(self.config.group_timeout_seconds);
            self.group_deadlines.insert((deadline, no));
        }
    }

    /// Turning hooks on or off changes who has to look at the groups that wait.
    fn pose_by_config(&mut self) {
        if self.config.is_hooked() {
            let unshaped: Vec<(GroupNo, Stage)> = self
                .ready
                .values()
                .filter_map(|no| Some((*no, self.groups.get(no)?)))
                .filter(|(_, group)| group.shape.is_none())
                .map(|(no, group)| (no, group.stage()))
                .collect();
            for (no, stage) in unshaped {
                self.pose(no, stage);
            }
        } else {
            // Those that are full are judged by our own rules when their time is up.
            for no in std::mem::take(&mut self.posed) {
                self.posed.insert(no);
                self.reopen(no);
            }
        }
    }

    fn drop_group(&mut self, no: GroupNo, reason: DropReason, freed: &mut Vec<(Place, u32)>) {
        self.close(no);
        let Some(group) = self.groups.remove(&no) else { return };
        self.unindex(no, group.status, group.touched_at);
        self.tally.finish(&group.instance);
        if reason == DropReason::Regenerated
            && let Some(instance) = self.instances.get_mut(&Uid::of(&group.instance))
        {
            instance.uncounted += 1;
        }
        for rollout in &group.rollouts {
            self.settle(rollout, Fate::Dropped(reason), freed);
        }
        *self.books.dropped.entry(reason).or_default() += group.rollouts.len() as u64;
        self.books.held -= group.rollouts.len() as u64;
        self.books.held_bytes -= group.bytes();
    }

    fn drop_rollout(&mut self, no: GroupNo, uid: Uid, reason: DropReason, freed: &mut Vec<(Place, u32)>) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        let lease = match group.status {
            GroupStatus::Pooled => return self.drop_pooled(uid, reason, freed),
            GroupStatus::Leased(lease, _) => Some(lease),
            GroupStatus::Open | GroupStatus::Ready(_) | GroupStatus::Posed(_) => None,
        };
        let Some(index) = group.rollouts.iter().position(|rollout| rollout.uid == uid) else { return };
        let rollout = group.rollouts.remove(index);
        if let Some(shape) = &mut group.shape {
            shape.forget(index);
        }
        // What the filter takes out is not in the rows; a loss that the generator's functions did not foresee is.
        let surprises = group.shape.is_some() && lease.is_none() && reason != DropReason::Filtered;
        let stage = group.stage();
        let size = u64::from(rollout.size_bytes);
        match lease.and_then(|lease| self.leases.get(&lease)).map(|lease| lease.status) {
            None => {
                self.books.held -= 1;
                self.books.held_bytes -= size;
            }
            Some(LeaseStatus::Out(_)) => {
                self.books.leased -= 1;
                self.books.leased_bytes -= size;
            }
            Some(LeaseStatus::Acked(_)) => {
                self.books.trained -= 1;
                self.books.retained -= 1;
                self.books.retained_bytes -= size;
            }
        }
        *self.books.dropped.entry(reason).or_default() += 1;
        self.settle(&rollout, Fate::Dropped(reason), freed);
        if surprises {
            self.pose(no, stage);
        }
        if self.groups.get(&no).is_some_and(|group| group.rollouts.is_empty() && lease.is_none()) {
            self.close(no);
            if let Some(group) = self.groups.remove(&no) {
                self.unindex(no, group.status, group.touched_at);
            }
        }
    }

    /// Takes a group out of the index of its status.
    fn unindex(&mut self, no: GroupNo, status: GroupStatus, touched_at: Time) {
        match status {
            GroupStatus::Open => {
                let deadline = touched_at.after_secs(self.config.group_timeout_seconds);
                self.group_deadlines.remove(&(deadline, no));
            }
            GroupStatus::Ready(order) => {
                self.ready.remove(&order);
            }
            GroupStatus::Posed(_) => {
                self.posed.remove(&no);
            }
            GroupStatus::Leased(..) | GroupStatus::Pooled => {}
        }
    }

    pub(super) fn settle(&mut self, rollout: &Rollout, fate: Fate, freed: &mut Vec<(Place, u32)>) {
        self.uids.remove(&rollout.uid);
        if let Some(replay) = &mut self.replay {
            replay.forget(rollout.uid);
        }
        self.settled.put(rollout.uid, fate, rollout.digest);
        freed.push((rollout.place, rollout.size_bytes));
    }

    fn hand_out(&mut self, lease: LeaseNo, groups: &[GroupNo]) {
        for no in groups {
            self.close(*no);
            let Some(group) = self.groups.get_mut(no) else { continue };
            if let GroupStatus::Ready(order) = group.status {
                self.ready.remove(&order);
                group.status = GroupStatus::Leased(lease, order);
                let (count, bytes) = (group.rollouts.len() as u64, group.bytes());
                self.books.held -= count;
                self.books.held_bytes -= bytes;
                self.books.leased += count;
                self.books.leased_bytes += bytes;
            }
        }
    }

    /// Rollouts and bytes in the groups of a lease.
    fn weigh(&self, groups: &[GroupNo]) -> (u64, u64) {
        groups.iter().filter_map(|no| self.groups.get(no)).fold((0, 0), |(count, bytes), group| {
            (count + group.rollouts.len() as u64, bytes + group.bytes())
        })
    }

    fn ack(&mut self, no: LeaseNo, last: bool, freed: &mut Vec<(Place, u32)>) {
        let Some(lease) = self.leases.get_mut(&no) else { return };
        let LeaseStatus::Out(until) = lease.status else { return };
        lease.status = LeaseStatus::Acked(None);
        lease.tally = Default::default();
        let (groups, sample) = (lease.groups.clone(), lease.sample.clone());
        self.lease_deadlines.remove(&(until, no));
        self.end_uses(sample, Use::Acked, freed);
        let (count, bytes) = self.weigh(&groups);
        self.books.leased -= count;
        self.books.leased_bytes -= bytes;
        self.books.trained += count;
        self.books.retained += count;
        self.books.retained_bytes += bytes;
        if last {
            self.settle_lease(no, None, freed);
        }
    }

    /// The rollouts of an acked lease are trained for good.
    fn settle_lease(&mut self, no: LeaseNo, step: Option<u64>, freed: &mut Vec<(Place, u32)>) {
        let Some(lease) = self.leases.remove(&no) else { return };
        self.end_uses(lease.sample, Use::Final { lease: no, step }, freed);
        let (count, bytes) = self.weigh(&lease.groups);
        self.books.retained -= count;
        self.books.retained_bytes -= bytes;
        for group in &lease.groups {
            let Some(group) = self.groups.remove(group) else { continue };
            for rollout in &group.rollouts {
                self.settle(rollout, Fate::Trained { lease: no, step }, freed);
            }
        }
        self.end(no, Ending::Trained { step });
    }

    fn end(&mut self, no: LeaseNo, ending: Ending) {
        self.ended.push_back((no, ending));
        if self.ended.len() > ENDED_REMEMBERED {
            self.ended.pop_front();
        }
    }

    /// The groups of a lease go back to where they stood in the queue, and its rollouts to the pool.
    fn put_back(&mut self, no: LeaseNo, ending: Ending, freed: &mut Vec<(Place, u32)>) {
        let Some(lease) = self.leases.remove(&no) else { return };
        let undone = if matches!(lease.status, LeaseStatus::Out(_)) { Use::Returned } else { Use::Undone };
        self.end_uses(lease.sample, undone, freed);
        let (count, bytes) = self.weigh(&lease.groups);
        match lease.status {
            LeaseStatus::Out(until) => {
                self.lease_deadlines.remove(&(until, no));
                self.books.leased -= count;
                self.books.leased_bytes -= bytes;
                // The reader never got to use it, so what it was told is told again.
                self.tally.merge(lease.tally);
            }
            LeaseStatus::Acked(_) => {
                self.books.trained -= count;
                self.books.retained -= count;
                self.books.retained_bytes -= bytes;
            }
        }
        self.books.held += count;
        self.books.held_bytes += bytes;
        for group_no in &lease.groups {
            let Some(group) = self.groups.get_mut(group_no) else { continue };
            if group.rollouts.is_empty() {
                self.groups.remove(group_no);
            } else if let GroupStatus::Leased(_, order) = group.status {
                group.status = GroupStatus::Ready(order);
                self.ready.insert(order, *group_no);
                // It was leased before hooks were turned on.
                if self.config.is_hooked() && group.shape.is_none() {
                    let stage = group.stage();
                    self.pose(*group_no, stage);
                }
            }
        }
        self.end(no, ending);
    }

    fn commit(&mut self, step: u64, leases: &[LeaseNo], freed: &mut Vec<(Place, u32)>) {
        for no in leases {
            if let Some(lease) = self.leases.get_mut(no) {
                lease.status = LeaseStatus::Acked(Some(step));
            }
        }
        if self.commits.last() != Some(&step) {
            self.commits.push(step);
        }
        while self.commits.len() > self.config.keep_commits as usize {
            let oldest = self.commits.remove(0);
            self.floor = Some(oldest);
            let done: Vec<(LeaseNo, u64)> = self
                .leases
                .iter()
                .filter_map(|(no, lease)| match lease.status {
                    LeaseStatus::Acked(Some(tied)) if tied <= oldest => Some((*no, tied)),
                    _ => None,
                })
                .collect();
            for (no, tied) in done {
                self.settle_lease(no, Some(tied), freed);
            }
        }
        if let Some(replay) = &mut self.replay {
            replay.mark(step, self.floor);
        }
    }

    /// To a step, or to before the first.
    fn rewind(&mut self, step: Option<u64>, freed: &mut Vec<(Place, u32)>) {
        let stays = |committed: u64| step.is_some_and(|step| committed <= step);
        let undone: Vec<LeaseNo> = self
            .leases
            .iter()
            .filter(|(_, lease)| !matches!(lease.status, LeaseStatus::Acked(Some(tied)) if stays(tied)))
            .map(|(no, _)| *no)
            .collect();
        for no in undone {
            self.put_back(no, Ending::Rewound, freed);
        }
        self.commits.retain(|&committed| stays(committed));
        if let Some(replay) = &mut self.replay {
            replay.rewind(step);
        }
    }

    /// Makes the deadline index anew, as the timeout it was made with has changed.
    pub(super) fn index_deadlines(&mut self) {
        let secs = self.config.group_timeout_seconds;
        let open = self.groups.iter().filter(|(_, group)| group.status == GroupStatus::Open);
        self.group_deadlines =
            open.map(|(no, group)| -> (Time, GroupNo) { (group.touched_at.after_secs(secs), *no) }).collect();
    }
}
