//! What became of every rollout, told from the ledger's events alone.
//!
//! The ledger knows rollouts by a hash and forgets them once nothing can change any more; an archive tells of them by
//! their uid, for ever. So this follows the events with just enough memory to say which uids a group or a lease
//! stands for. The last fate told of a rollout is the one it has on the ledger; one of which nothing was told is held.
//!
//! In a run that samples, a rollout counts as trained from its first use that was acked, whether or not it can be
//! drawn again.

use rollyard_core::ids::{GroupNo, LeaseNo, Time};
use rollyard_core::ledger::{Event, Pick, Uid};
use rollyard_core::pipeline::DropReason;
use rollyard_core::run_config::RunConfig;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A line of the archive's fates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fate {
    pub uid: Box<str>,
    pub status: Status,
    /// Why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<DropReason>,
    /// What a hook said, where the reason alone does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The step that trained on it, once one was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The weights it was sampled with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(skip)]
    pub at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Trained,
    Dropped,
    /// Again: what it was trained for was undone.
    Held,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Trained => "trained",
            Self::Dropped => "dropped",
            Self::Held => "held",
        }
    }
}

/// Which uids the groups and leases of a run stand for.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    groups: HashMap<GroupNo, Members>,
    leases: BTreeMap<LeaseNo, Lease>,
    commits: Vec<u64>,
    config: RunConfig,
}

#[derive(Clone, Debug, Default)]
struct Members {
    list: Vec<Member>,
    /// With those that left.
    ever: u64,
}

#[derive(Clone, Debug)]
struct Member {
    hash: Uid,
    uid: Box<str>,
    version: Option<u64>,
    /// Leases that drew it and can still be undone.
    pending: u32,
    /// Uses that were acked, with the step of each; only of what was drawn.
    acked: Vec<(LeaseNo, Option<u64>)>,
    /// Why it left the pool while leases remembered it.
    leaving: Option<DropReason>,
}

#[derive(Clone, Debug)]
struct Lease {
    groups: Vec<GroupNo>,
    picks: Vec<Pick>,
    /// The step within, once a commit has tied it to one.
    acked: Option<Option<u64>>,
}

impl Fates {
    /// Takes an event in and adds what it says of rollouts to `told`.
    pub fn hear(&mut self, event: &Event, told: &mut Vec<Fate>) {
        match event {
            Event::Configured { config, .. } => self.config = (**config).clone(),
            Event::Admitted(new) => {
                let members = self.groups.entry(new.group).or_default();
                members.ever += 1;
                members.list.push(Member {
                    hash: Uid::of(&new.uid),
                    uid: new.uid.as_str().into(),
                    version: new.version,
                    pending: 0,
                    acked: Vec::new(),
                    leaving: None,
                });
            }
            Event::GroupDropped { at, group, reason, why } => {
                for member in self.groups.remove(group).unwrap_or_default().list {
                    told.push(Fate { why: why.clone(), ..member.dropped(*reason, *at) });
                }
            }
            Event::RolloutDropped { at, group, uid, reason } => {
                self.drop_one(*group, *uid, *reason, *at, told);
            }
            Event::Leased { lease, groups, .. } => {
                self.leases.insert(*lease, Lease { groups: groups.clone(), picks: Vec::new(), acked: None });
            }
            Event::Sampled { lease, picks, .. } => {
                self.leases.insert(*lease, Lease { groups: Vec::new(), picks: picks.clone(), acked: None });
                for pick in picks {
                    if let Some(member) = self.member(pick) {
                        member.pending += 1;
                    }
                }
            }
            Event::Acked { at, lease, last } => self.ack(*lease, *last, *at, told),
            Event::Committed { at, step, leases } => self.commit(*step, leases, *at, told),
            Event::Returned { at, lease, .. } => self.put_back(*lease, *at, told),
            Event::Rewound { at, step } => self.rewind(Some(*step), *at, told),
            Event::RewoundToStart { at } => self.rewind(None, *at, told),
            Event::GroupReady { .. }
            | Event::Extended { .. }
            | Event::VersionSet { .. }
            | Event::Pooled { .. }
            | Event::StepSet { .. }
            | Event::GroupPosed { .. }
            | Event::GroupWaits { .. }
            | Event::GroupShaped { .. }
            | Event::Noted { .. }
            | Event::Relocated { .. } => {}
        }
    }

    /// Rollouts that ever were in a group.
    pub fn group_len(&self, group: GroupNo) -> u64 {
        self.groups.get(&group).map_or(0, |members| members.ever)
    }

    fn member(&mut self, pick: &Pick) -> Option<&mut Member> {
        self.groups.get_mut(&pick.group)?.list.iter_mut().find(|member| member.hash == pick.uid)
    }

    fn drop_one(&mut self, group: GroupNo, uid: Uid, reason: DropReason, at: Time, told: &mut Vec<Fate>) {
        let Some(members) = self.groups.get_mut(&group) else { return };
        let Some(index) = members.list.iter().position(|member| member.hash == uid) else { return };
        let Some(member) = members.list.get_mut(index) else { return };
        // What was drawn has left the pool, but is settled only with its last lease. Damage waits for nothing.
        if member.pending > 0 && reason != DropReason::Corrupt {
            member.leaving = Some(reason);
            return;
        }
        let member = members.list.remove(index);
        if member.acked.is_empty() || reason == DropReason::Corrupt {
            told.push(member.dropped(reason, at));
        }
        self.forget_if_empty(group);
    }

    fn ack(&mut self, no: LeaseNo, last: bool, at: Time, told: &mut Vec<Fate>) {
        let Some(lease) = self.leases.get_mut(&no) else { return };
        lease.acked = Some(None);
        let lease = lease.clone();
        self.tell_trained(no, &lease, None, at, told);
        if last {
            self.settle(no, at, told);
        }
    }

    fn commit(&mut self, step: u64, leases: &[LeaseNo], at: Time, told: &mut Vec<Fate>) {
        for no in leases {
            let Some(lease) = self.leases.get_mut(no) else { continue };
            lease.acked = Some(Some(step));
            let lease = lease.clone();
            self.tell_trained(*no, &lease, Some(step), at, told);
        }
        if self.commits.last() != Some(&step) {
            self.commits.push(step);
        }
        while self.commits.len() > self.config.keep_commits as usize {
            let oldest = self.commits.remove(0);
            let is_done = |lease: &Lease| matches!(lease.acked, Some(Some(tied)) if tied <= oldest);
            let done: Vec<LeaseNo> =
                self.leases.iter().filter(|(_, lease)| is_done(lease)).map(|(no, _)| *no).collect();
            for no in done {
                self.settle(no, at, told);
            }
        }
    }

    fn tell_trained(
        &mut self,
        no: LeaseNo,
        lease: &Lease,
        step: Option<u64>,
        at: Time,
        told: &mut Vec<Fate>,
    ) {
        for group in &lease.groups {
            let members = self.groups.get(group).map(|members| members.list.as_slice()).unwrap_or_default();
            told.extend(members.iter().map(|member| member.trained(step, at)));
        }
        for pick in &lease.picks {
            let Some(member) = self.member(pick) else { continue };
            member.acked.retain(|(acked, _)| *acked != no);
            member.acked.push((no, step));
            told.push(member.trained(step, at));
        }
    }

    /// Nothing undoes this lease any more.
    fn settle(&mut self, no: LeaseNo, at: Time, told: &mut Vec<Fate>) {
        let Some(lease) = self.leases.remove(&no) else { return };
        for group in &lease.groups {
            self.groups.remove(group);
        }
        for pick in &lease.picks {
            self.release(pick, at, told);
        }
    }

    fn put_back(&mut self, no: LeaseNo, at: Time, told: &mut Vec<Fate>) {
        let Some(lease) = self.leases.remove(&no) else { return };
        if lease.acked.is_some() {
            for group in &lease.groups {
                let members =
                    self.groups.get(group).map(|members| members.list.as_slice()).unwrap_or_default();
                told.extend(members.iter().map(|member| member.held(at)));
            }
        }
        for pick in &lease.picks {
            if let Some(member) = self.member(pick) {
                let uses = member.acked.len();
                member.acked.retain(|(acked, _)| *acked != no);
                if member.acked.len() < uses {
                    told.push(match member.acked.last() {
                        Some((_, step)) => member.trained(*step, at),
                        None => member.held(at),
                    });
                }
            }
            self.release(pick, at, told);
        }
    }

    /// A lease has let go of what it drew; what cannot be drawn again is forgotten with its last lease.
    fn release(&mut self, pick: &Pick, at: Time, told: &mut Vec<Fate>) {
        let max = self.config.rules().max_samples;
        let Some(member) = self.member(pick) else { return };
        member.pending = member.pending.saturating_sub(1);
        let used_up = max.is_some_and(|max| member.acked.len() >= max.get() as usize);
        if member.pending > 0 || (member.leaving.is_none() && !used_up) {
            return;
        }
        if let (Some(reason), true) = (member.leaving, member.acked.is_empty()) {
            told.push(member.dropped(reason, at));
        }
        if let Some(members) = self.groups.get_mut(&pick.group) {
            members.list.retain(|member| member.hash != pick.uid);
        }
        self.forget_if_empty(pick.group);
    }

    fn rewind(&mut self, step: Option<u64>, at: Time, told: &mut Vec<Fate>) {
        let stays = |tied: u64| step.is_some_and(|step| tied <= step);
        let undone: Vec<LeaseNo> = self
            .leases
            .iter()
            .filter(|(_, lease)| !matches!(lease.acked, Some(Some(tied)) if stays(tied)))
            .map(|(no, _)| *no)
            .collect();
        for no in undone {
            self.put_back(no, at, told);
        }
        self.commits.retain(|committed| stays(*committed));
    }

    fn forget_if_empty(&mut self, group: GroupNo) {
        // One that is leased may be empty for a while and is named again; one that grows has members.
        if self.groups.get(&group).is_some_and(|members| members.list.is_empty()) {
            self.groups.remove(&group);
        }
    }
}

impl Member {
    fn fate(&self, status: Status, at: Time) -> Fate {
        let (uid, version) = (self.uid.clone(), self.version);
        Fate { uid, status, reason: None, why: None, step: None, version, at }
    }

    fn dropped(&self, reason: DropReason, at: Time) -> Fate {
        Fate { reason: Some(reason), ..self.fate(Status::Dropped, at) }
    }

    fn trained(&self, step: Option<u64>, at: Time) -> Fate {
        Fate { step, ..self.fate(Status::Trained, at) }
    }

    fn held(&self, at: Time) -> Fate {
        self.fate(Status::Held, at)
    }
}
