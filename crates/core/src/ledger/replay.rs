//! The pool of a run in replay mode, on the books.
//!
//! A rollout is a *member* from the day it is admitted. With its group it enters the pool; each lease that
//! draws it counts as a use, until the lease is returned or undone. What it is on the books follows from its
//! uses alone:
//!
//! - *leased* while a reader has it,
//! - *trained* when it is used up, or has left the pool after it was used,
//! - *held* otherwise.
//!
//! It is settled, and its payload freed, when no lease that a rewind could undo remembers it any more.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use super::event::{Admitted, Origin};
use super::fixed;
use super::group::Uid;
use super::settled::Fate;
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::pipeline::DropReason;
use crate::replay::{Census, EntryId, Facts, Flow, Pool, Rules};

#[derive(Clone, Debug)]
pub(super) struct Replay {
    pub(super) pool: Pool<Uid>,
    pub(super) members: HashMap<Uid, Member, fixed::Hasher>,
    /// Batches drawn, which is where the seed's stream stands.
    pub(super) draws: u64,
    /// The sampler's state at the commits that can be rewound to, oldest first.
    pub(super) marks: Vec<Mark>,
    pub(super) flow: Flow,
    pub(super) census: Census,
    /// Environments with more live rollouts than they may have; what is too much is dropped at the next tick.
    pub(super) crowded: BTreeSet<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) group: GroupNo,
    pub(super) env: Box<str>,
    pub(super) timestamp: f64,
    pub(super) len: u32,
    pub(super) version: u64,
    pub(super) advantage: f32,
    /// Leases that have it and are out.
    pub(super) out: u32,
    /// Uses that were acked.
    pub(super) acked: u32,
    /// Leases that have it and can still be undone.
    pub(super) pending: u32,
    /// Why it left the pool while leases remembered it.
    pub(super) leaving: Option<DropReason>,
    /// The last lease that trained on it for good, and its step.
    pub(super) last: Option<(LeaseNo, Option<u64>)>,
    /// Its place in the pool, once its group is complete.
    #[serde(skip)]
    pub(super) entry: Option<EntryId>,
}

/// The sampler's state when a step was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) commit: u64,
    pub(super) draws: u64,
    /// The trainer's.
    pub(super) step: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Held,
    Leased,
    Trained,
}

/// How a use of a rollout comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A lease drew it.
    Drawn,
    /// The reader trained on it.
    Acked,
    /// The lease came back.
    Returned,
    /// A rewind undid what was acked.
    Undone,
    /// No rewind reaches the lease any more.
    Final { lease: LeaseNo, step: Option<u64> },
}

impl Replay {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            pool: Pool::new(rules),
            members: HashMap::default(),
            draws: 0,
            marks: Vec::new(),
            flow: Flow::default(),
            census: Census::default(),
            crowded: BTreeSet::new(),
        }
    }

    pub(super) fn admit(&mut self, uid: Uid, new: &Admitted, origin: &Origin) {
        self.flow.inserted += 1;
        self.census.of(&origin.env).generated.add(u64::from(origin.len));
        self.members.insert(
            uid,
            Member {
                group: new.group,
                env: origin.env.as_str().into(),
                timestamp: origin.timestamp,
                len: origin.len,
                version: new.version.unwrap_or_default(),
                advantage: 0.0,
                out: 0,
                acked: 0,
                pending: 0,
                leaving: None,
                last: None,
                entry: None,
            },
        );
    }

    /// From now on it can be drawn.
    pub(super) fn enter(&mut self, uid: Uid, advantage: f32) {
        let Some(member) = self.members.get_mut(&uid) else { return };
        member.advantage = advantage;
        let entry = self.pool.insert(&member.env, member.facts(), uid);
        // One that is put back as it was has uses already.
        self.pool.set_used(entry, member.used());
        member.entry = Some(entry);
        let env = member.env.clone();
        self.note_crowd(&env);
    }

    /// From now on it cannot be drawn.
    pub(super) fn leave(&mut self, uid: Uid, reason: DropReason) {
        let Some(member) = self.members.get_mut(&uid) else { return };
        member.leaving = Some(reason);
        let env = member.env.clone();
        if let Some(entry) = member.entry.take() {
            self.pool.remove(entry);
        }
        self.note_crowd(&env);
    }

    pub(super) fn note(&mut self, uid: Uid, used: Use) {
        let Some(member) = self.members.get_mut(&uid) else { return };
        match used {
            Use::Drawn => {
                member.out += 1;
                member.pending += 1;
                self.flow.sampled += 1;
            }
            Use::Acked => {
                member.out -= 1;
                member.acked += 1;
                self.census.of(&member.env).trained.add(u64::from(member.len));
            }
            Use::Returned => {
                member.out -= 1;
                member.pending -= 1;
                self.flow.sampled -= 1;
            }
            Use::Undone => {
                member.acked -= 1;
                member.pending -= 1;
                self.flow.sampled -= 1;
                self.census.of(&member.env).trained.remove(u64::from(member.len));
            }
            Use::Final { lease, step } => {
                member.pending -= 1;
                member.last = Some((lease, step));
            }
        }
        let (entry, used, env) = (member.entry, member.used(), member.env.clone());
        if let Some(entry) = entry {
            self.pool.set_used(entry, used);
        }
        self.note_crowd(&env);
    }

    /// Forgets a rollout that is settled.
    pub(super) fn forget(&mut self, uid: Uid) {
        let Some(member) = self.members.remove(&uid) else { return };
        if let Some(entry) = member.entry {
            self.pool.remove(entry);
        }
        if member.entry.is_some() || member.leaving.is_some() {
            self.flow.removed += 1;
        } else {
            // Its group never came to anything, so it was never there to be sampled.
            self.flow.inserted -= 1;
        }
        self.note_crowd(&member.env);
    }

    pub(super) fn column(&self, uid: Uid) -> Option<Column> {
        let member = self.members.get(&uid)?;
        Some(if member.out > 0 {
            Column::Leased
        } else if member.leaving.is_some() || self.is_used_up(member) {
            Column::Trained
        } else {
            Column::Held
        })
    }

    /// What became of a rollout that nothing can change any more.
    pub(super) fn fate(&self, uid: Uid) -> Option<Fate> {
        let member = self.members.get(&uid)?;
        if member.pending > 0 {
            return None;
        }
        let trained = || member.last.map(|(lease, step)| Fate::Trained { lease, step });
        match member.leaving {
            Some(reason) if member.acked == 0 => Some(Fate::Dropped(reason)),
            Some(_) => trained(),
            None if self.is_used_up(member) => trained(),
            None => None,
        }
    }

    fn is_used_up(&self, member: &Member) -> bool {
        self.pool.rules().max_samples.is_some_and(|max| member.used() >= max.get())
    }

    pub(super) fn mark(&mut self, commit: u64, floor: Option<u64>) {
        self.marks.retain(|mark| mark.commit != commit && floor.is_none_or(|floor| mark.commit >= floor));
        self.marks.push(Mark { commit, draws: self.draws, step: self.pool.step() });
    }

    /// The sampler's state as it was when `commit` was made, or when the run began.
    pub(super) fn state_at(&self, commit: u64) -> Mark {
        let known = self.marks.iter().rev().find(|mark| mark.commit <= commit);
        let begin = || {
            let step = self.pool.step().min(i64::try_from(commit).unwrap_or(i64::MAX));
            Mark { commit, draws: 0, step }
        };
        known.copied().unwrap_or_else(begin)
    }

    /// To how it was when `commit` was made, or when the run began.
    pub(super) fn rewind(&mut self, commit: Option<u64>) {
        let Some(commit) = commit else {
            self.marks.clear();
            return self.rewind(Some(0));
        };
        let Mark { draws, step, .. } = self.state_at(commit);
        self.draws = draws;
        self.pool.set_step(step);
        self.marks.retain(|mark| mark.commit <= commit);
    }

    /// Puts the pool together anew: with other rules, or from what a snapshot kept.
    pub(super) fn index(&mut self, rules: Rules, order: &[Uid]) {
        let step = self.pool.step();
        self.pool = Pool::new(rules);
        self.pool.set_step(step);
        self.crowded.clear();
        for uid in order {
            let advantage = self.members.get(uid).map(|member| member.advantage);
            self.enter(*uid, advantage.unwrap_or_default());
        }
    }

    /// Who is in the pool, in an order that gives the same pool again.
    pub(super) fn order(&self) -> Vec<Uid> {
        self.pool.entries().map(|(_, _, entry)| entry.item).collect()
    }

    /// When something must leave the pool.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        if !self.crowded.is_empty() || self.pool.has_wrong_steps() {
            return Some(Time(0));
        }
        // A float to integer cast saturates, and what is before 1970 is due.
        self.pool.next_expiry().map(|secs| Time((secs * 1000.0).ceil() as u64))
    }

    fn note_crowd(&mut self, env: &str) {
        if self.pool.env_size(env) > self.pool.rules().capacity.get() {
            self.crowded.insert(env.into());
        } else {
            self.crowded.remove(env);
        }
    }
}

/// What decides on the chances of a rollout of which only the whole's version is known.
pub(super) fn facts(version: u64, timestamp: f64, advantage: f32) -> Facts {
    let weight_step = i64::try_from(version).unwrap_or(i64::MAX);
    Facts { weight_step, newest_version: weight_step, timestamp, priority: advantage.abs() }
}

impl Member {
    pub(super) fn used(&self) -> u32 {
        self.out + self.acked
    }

    pub(super) fn facts(&self) -> Facts {
        facts(self.version, self.timestamp, self.advantage)
    }
}
