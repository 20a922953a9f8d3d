//! Looks at the ledger and says what would happen; changes nothing.

use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

use super::command::{Command, LeaseTerms, Refusal, Want, deadline};
use super::event::{Admitted, Event};
use super::group::{Group, GroupStatus, Uid, rules_of};
use super::lease::LeaseStatus;
use super::shape::Ruling;
use super::{Ledger, Whereabouts};
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::pipeline::{DropReason, Member, Row, Stage, Transform, Verdict, passing, process};
use crate::run_config::{Mode, RunConfig};
use crate::wire::item::Item;

/// The events of one command; an admission, the common one, makes one or two.
pub type Events = SmallVec<[Event; 2]>;

/// Timeouts handled in one tick, so that a great many at once do not hold up writers.
const TIMEOUTS_PER_TICK: usize = 512;

impl Ledger {
    /// What `command` leads to at `now`. No events means that it is done already.
    pub fn decide(&self, command: &Command, now: Time) -> Result<Events, Refusal> {
        match command {
            Command::Configure { changes, start } => {
                let config = self.config.patched(changes)?;
                self.check_mode(config.mode)?;
                if config == self.config && (start.is_none() || *start == self.start) {
                    return Ok(smallvec![]);
                }
                let (config, start) = (Box::new(config), start.clone());
                Ok(smallvec![Event::Configured { at: now, config, start }])
            }
            Command::Admit { item, digest, size_bytes } => self.decide_admit(item, *digest, *size_bytes, now),
            Command::CloseGroup { instance } => self.decide_close(instance, now),
            Command::Lease { want, terms } => self.decide_lease(*want, terms, now),
            Command::Ack { lease } => match self.lease_status(*lease)? {
                LeaseStatus::Acked(_) => Ok(smallvec![]),
                LeaseStatus::Out(_) => {
                    let last = self.config.auto_commit && self.leases.get(lease).is_some_and(|l| l.auto);
                    Ok(smallvec![Event::Acked { at: now, lease: *lease, last }])
                }
            },
            Command::Return { lease } => match self.lease_status(*lease)? {
                LeaseStatus::Acked(_) => Err(Refusal::LeaseAcked { lease: *lease }),
                LeaseStatus::Out(_) => {
                    Ok(smallvec![Event::Returned { at: now, lease: *lease, expired: false }])
                }
            },
            Command::Extend { lease, secs } => match self.lease_status(*lease)? {
                LeaseStatus::Acked(_) => Err(Refusal::LeaseAcked { lease: *lease }),
                LeaseStatus::Out(_) => {
                    Ok(smallvec![Event::Extended { at: now, lease: *lease, until: deadline(now, *secs)? }])
                }
            },
            Command::Commit { step, leases } => self.decide_commit(*step, leases.as_deref(), now),
            Command::Rewind { step } => match self.floor {
                Some(floor) if *step < floor => {
                    Err(self.too_far_back(i64::try_from(*step).unwrap_or(i64::MAX), floor))
                }
                _ => Ok(smallvec![Event::Rewound { at: now, step: *step }]),
            },
            Command::RewindToStart => match self.floor {
                Some(floor) => Err(self.too_far_back(-1, floor)),
                None => Ok(smallvec![Event::RewoundToStart { at: now }]),
            },
            Command::Judge { group, seen, ruling } => Ok(self.decide_judge(*group, *seen, ruling, now)),
            Command::Note { state, told } => {
                Ok(smallvec![Event::Noted { at: now, state: *state, told: told.clone() }])
            }
            Command::SetVersion { version } if self.version == Some(*version) => Ok(smallvec![]),
            Command::SetVersion { version } => {
                Ok(smallvec![Event::VersionSet { at: now, version: *version }])
            }
            Command::SetStep { step } => self.decide_step(*step, now),
            Command::Sample { draw, terms } => self.decide_sample(*draw, terms, now),
            Command::Drop { uid } => self.decide_drop(uid, now),
            Command::Discard { uid } => Ok(self.decide_discard(*uid, now)),
            Command::DropOpen => Ok(self.decide_drop_open(now)),
            Command::Tick => Ok(self.decide_tick(now)),
        }
    }

    fn decide_admit(&self, item: &Item, digest: u64, size_bytes: u32, now: Time) -> Result<Events, Refusal> {
        let uid = Uid::of(&item.uid);
        if let Some(known) = self.digest_of(uid) {
            // The same bytes again are a retry; other bytes are another rollout that took the name.
            if known == digest {
                return Ok(smallvec![]);
            }
            let instance = self.instance_of(uid).unwrap_or_default();
            return Err(Refusal::UidTaken { uid: item.uid.clone(), instance });
        }
        self.check_room(u64::from(size_bytes))?;

        let version = item.version.or(self.version);
        let origin = self.origin(item, version, now)?;
        let size = origin.as_ref().and_then(|origin| origin.group_size);
        let instance = self.instances.get(&Uid::of(&item.instance));
        let joined = instance.and_then(|instance| {
            let open = instance.open.iter().filter_map(|no| Some((*no, self.groups.get(no)?)));
            open.into_iter().find(|(_, group)| {
                group.takes(item.epoch, version, &self.config) && size.is_none_or(|size| size == group.size)
            })
        });
        let rules = match (joined, size) {
            (Some((_, group)), _) => group.rules(&self.config),
            (None, Some(size)) => rules_of(size, &self.config),
            (None, None) => Cow::Borrowed(&self.config),
        };
        let (group, round) = match joined {
            Some((no, group)) => (no, group.round),
            None => (self.next_group, instance.map_or(0, |instance| instance.next_round)),
        };
        if joined.is_none() {
            self.check_pace(rules.group_len())?;
        }
        let admitted = Box::new(Admitted {
            at: now,
            uid: item.uid.clone(),
            instance: item.instance.clone(),
            group,
            round,
            epoch: item.epoch,
            version,
            reward: item.reward,
            answered: item.answered,
            digest,
            size_bytes,
            origin,
        });
        let mut conclusion = None;
        let status = joined.map_or(GroupStatus::Open, |(_, group)| group.status);
        if self.is_posed_again(status, joined.map(|(_, group)| group)) {
            let len = joined.map_or(0, |(_, group)| group.rollouts.len()) + 1;
            let stage = if len >= rules.group_len() { Stage::Full } else { Stage::Growing };
            conclusion = Some(smallvec![Event::GroupPosed { at: now, group, stage }]);
        } else if status == GroupStatus::Open {
            let mut members = joined.map(|(_, group)| group.members()).unwrap_or_default();
            members.push(Member { reward: item.reward, answered: item.answered });
            let stage = if members.len() >= rules.group_len() { Stage::Full } else { Stage::Growing };
            conclusion = judge(&members, stage, &rules)
                .map(|verdict| self.conclude(verdict, group, Some(&admitted), stage, now, 0));
        }
        let mut events: Events = smallvec![Event::Admitted(admitted)];
        events.extend(conclusion.into_iter().flatten());
        Ok(events)
    }

    fn check_room(&self, size_bytes: u64) -> Result<(), Refusal> {
        let (items, bytes) = self.books.kept();
        let (items_max, bytes_max) = (self.config.max_buffer_size, self.config.max_buffer_bytes);
        if size_bytes > bytes_max {
            return Err(Refusal::TooLarge { size_bytes, bytes_max });
        }
        if items >= items_max || bytes + size_bytes > bytes_max {
            let retained = self.books.retained;
            return Err(Refusal::Full { items, bytes, items_max, bytes_max, retained });
        }
        Ok(())
    }

    /// The event that follows from the verdict on a group. `ahead` counts the groups made ready by earlier
    /// events of the same command.
    fn conclude(
        &self,
        verdict: Result<(), DropReason>,
        group: GroupNo,
        new: Option<&Admitted>,
        stage: Stage,
        at: Time,
        ahead: usize,
    ) -> Events {
        match verdict {
            Err(reason) => smallvec![Event::GroupDropped { at, group, reason, why: None }],
            Ok(()) if self.config.is_hooked() => smallvec![Event::GroupPosed { at, group, stage }],
            Ok(()) if self.replay.is_some() => self.pool_group(group, new, at),
            Ok(()) => smallvec![Event::GroupReady {
                at,
                group,
                order: self.next_ready + ahead as u64,
                closed: stage != Stage::Growing,
            }],
        }
    }

    fn decide_close(&self, instance: &str, now: Time) -> Result<Events, Refusal> {
        let open = self.instances.get(&Uid::of(instance)).map(|known| known.open.as_slice());
        let mut events = Events::new();
        let mut found = false;
        for no in open.unwrap_or_default() {
            let Some(group) = self.groups.get(no) else { continue };
            found = true;
            match group.status {
                GroupStatus::Open => {
                    let end = self.judge_end(*no, group, Stage::Closed, now, &events);
                    events.extend(end);
                }
                GroupStatus::Ready(order) => {
                    events.push(Event::GroupReady { at: now, group: *no, order, closed: true });
                }
                GroupStatus::Posed(Stage::Growing) => {
                    events.push(Event::GroupPosed { at: now, group: *no, stage: Stage::Closed });
                }
                GroupStatus::Posed(_) | GroupStatus::Leased(..) | GroupStatus::Pooled => {}
            }
        }
        if found { Ok(events) } else { Err(Refusal::NoOpenGroup { instance: instance.to_owned() }) }
    }

    fn judge_end(&self, no: GroupNo, group: &Group, stage: Stage, now: Time, so_far: &Events) -> Events {
        let ahead = so_far.iter().filter(|event| matches!(event, Event::GroupReady { .. })).count();
        match judge(&group.members(), stage, &group.rules(&self.config)) {
            Some(verdict) => self.conclude(verdict, no, None, stage, now, ahead),
            None => smallvec![],
        }
    }

    fn decide_lease(&self, want: Want, terms: &LeaseTerms, now: Time) -> Result<Events, Refusal> {
        if self.replay.is_some() {
            let what = "hand out whole groups";
            return Err(Refusal::WrongMode { mode: "replay", what, needed: "queue" });
        }
        let until = deadline(now, terms.secs.unwrap_or(self.config.lease_seconds))?;
        let mut events = Events::new();
        let mut groups = Vec::new();
        let enough = self.pick(want, |no, group, outcome| match outcome {
            Err(reason) => events.push(Event::GroupDropped { at: now, group: no, reason, why: None }),
            Ok(rows) => {
                groups.push(no);
                events.extend(unseen(group, &rows).map(|uid| Event::RolloutDropped {
                    at: now,
                    group: no,
                    uid,
                    reason: DropReason::Filtered,
                }));
            }
        });
        if !enough {
            // Groups that turned out bad are dropped all the same; the rest stay untouched.
            events.retain(|event| matches!(event, Event::GroupDropped { .. }));
            return Ok(events);
        }
        events.push(Event::Leased {
            at: now,
            lease: self.next_lease,
            groups,
            until,
            reader: terms.reader.clone(),
            auto: terms.auto,
        });
        Ok(events)
    }

    /// Walks the ready groups in order until `want` is met, and says whether it was.
    pub(super) fn pick(
        &self,
        want: Want,
        mut visit: impl FnMut(GroupNo, &Group, Result<Vec<Row>, DropReason>),
    ) -> bool {
        // Cheap before exact: a reader who waits for many groups must not make every write walk them all.
        if self.ready.len() < want.groups_min(self.group_size_max) {
            return false;
        }
        let (mut picked, mut rows_picked) = (0, 0);
        for no in self.ready.values() {
            let Some(group) = self.groups.get(no) else { continue };
            let outcome = group.rows(&self.config);
            if let Ok(rows) = &outcome {
                picked += 1;
                rows_picked += rows.len();
            }
            visit(*no, group, outcome);
            let met = match want {
                Want::All => false,
                Want::Groups(n) => picked >= n,
                Want::Rows(n) => rows_picked >= n,
            };
            if met {
                return true;
            }
        }
        want == Want::All && picked > 0
    }

    fn decide_commit(&self, step: u64, leases: Option<&[LeaseNo]>, now: Time) -> Result<Events, Refusal> {
        if let Some(last) = self.commits.last().copied().or(self.floor)
            && step < last
        {
            return Err(Refusal::StepNotAfter { step, last });
        }
        let acked: Vec<LeaseNo> = match leases {
            None => {
                let uncommitted =
                    |(_, lease): &(&LeaseNo, &super::Lease)| lease.status == LeaseStatus::Acked(None);
                self.leases.iter().filter(uncommitted).map(|(no, _)| *no).collect()
            }
            Some(named) => {
                let mut fresh = Vec::with_capacity(named.len());
                for &lease in named {
                    match self.lease_status(lease)? {
                        LeaseStatus::Out(_) => return Err(Refusal::NotAcked { lease }),
                        LeaseStatus::Acked(None) => fresh.push(lease),
                        LeaseStatus::Acked(Some(tied)) if tied == step => {}
                        LeaseStatus::Acked(Some(tied)) => {
                            return Err(Refusal::LeaseGone {
                                lease,
                                why: format!("was committed with step {tied}"),
                            });
                        }
                    }
                }
                fresh
            }
        };
        if acked.is_empty() && self.commits.last() == Some(&step) {
            return Ok(smallvec![]);
        }
        Ok(smallvec![Event::Committed { at: now, step, leases: acked }])
    }

    /// A group that was posed, or was ready as the generator's functions shaped it, has grown: what they said is
    /// about less than there is. While it can grow further, one that is posed stays so as it is.
    fn is_posed_again(&self, status: GroupStatus, group: Option<&Group>) -> bool {
        let Some(group) = group else { return false };
        let fills = group.rollouts.len() + 1 >= group.size.get() as usize;
        match status {
            GroupStatus::Posed(_) => fills,
            GroupStatus::Ready(_) => group.shape.is_some(),
            GroupStatus::Open | GroupStatus::Leased(..) | GroupStatus::Pooled => false,
        }
    }

    /// No events if the ruling is about what the group no longer is: it stays posed and is asked about again.
    fn decide_judge(&self, no: GroupNo, seen: u64, ruling: &Ruling, now: Time) -> Events {
        let Some(group) = self.groups.get(&no) else { return smallvec![] };
        let GroupStatus::Posed(stage) = group.status else { return smallvec![] };
        if group.fingerprint() != seen {
            return smallvec![];
        }
        let drop = |reason, why| smallvec![Event::GroupDropped { at: now, group: no, reason, why }];
        match ruling {
            Ruling::Waiting if stage == Stage::Growing => smallvec![Event::GroupWaits { at: now, group: no }],
            Ruling::Waiting => drop(DropReason::HookRejected, None),
            Ruling::Drop { reason, why } => drop(*reason, why.clone()),
            Ruling::Use(shape)
                if shape.rows.iter().all(|row| (row.member as usize) < group.rollouts.len()) =>
            {
                let shape = shape.clone();
                smallvec![Event::GroupShaped { at: now, group: no, order: self.next_ready, shape }]
            }
            Ruling::Use(_) => drop(
                DropReason::HookFailed,
                Some("a row shows a rollout that the group does not have".into()),
            ),
        }
    }

    fn too_far_back(&self, step: i64, floor: u64) -> Refusal {
        Refusal::TooFarBack { step, floor, keep_commits: self.config.keep_commits }
    }

    fn decide_drop(&self, uid: &str, now: Time) -> Result<Events, Refusal> {
        match self.whereabouts(uid) {
            Some(Whereabouts::Kept { no, rollout, lease: None, .. }) => {
                Ok(smallvec![Event::RolloutDropped {
                    at: now,
                    group: no,
                    uid: rollout.uid,
                    reason: DropReason::Requested,
                }])
            }
            Some(Whereabouts::Kept { lease: Some((lease, _)), .. }) => {
                Err(Refusal::RolloutBusy { uid: uid.to_owned(), lease })
            }
            _ => Err(Refusal::RolloutUnknown { uid: uid.to_owned() }),
        }
    }

    fn decide_discard(&self, uid: Uid, now: Time) -> Events {
        let reason = DropReason::Corrupt;
        self.uids
            .get(&uid)
            .map(|&group| Event::RolloutDropped { at: now, group, uid, reason })
            .into_iter()
            .collect()
    }

    fn decide_drop_open(&self, now: Time) -> Events {
        let reason = DropReason::Regenerated;
        let open = self.group_deadlines.iter().filter_map(|(_, no)| Some((*no, self.groups.get(no)?)));
        open.filter(|(_, group)| group.is_remade())
            .map(|(group, _)| Event::GroupDropped { at: now, group, reason, why: None })
            .collect()
    }

    fn decide_tick(&self, now: Time) -> Events {
        let mut events = Events::new();
        let due = |&&(deadline, _): &&(Time, _)| deadline <= now;
        for (_, no) in self.group_deadlines.iter().take_while(due).take(TIMEOUTS_PER_TICK) {
            if let Some(group) = self.groups.get(no) {
                let end = self.judge_end(*no, group, Stage::TimedOut, now, &events);
                events.extend(end);
            }
        }
        let due = |&&(deadline, _): &&(Time, _)| deadline <= now;
        for &(_, lease) in self.lease_deadlines.iter().take_while(due).take(TIMEOUTS_PER_TICK) {
            events.push(Event::Returned { at: now, lease, expired: true });
        }
        if let Some(replay) = self.replay.as_deref() {
            events.extend(self.overdue(replay.pool.step(), now));
        }
        events
    }

    fn lease_status(&self, lease: LeaseNo) -> Result<LeaseStatus, Refusal> {
        if let Some(known) = self.leases.get(&lease) {
            return Ok(known.status);
        }
        match self.ended.iter().rev().find(|(no, _)| *no == lease) {
            // A lease that was acked for good answers a repeated ack as it did the first.
            Some((_, super::Ending::Trained { step })) => Ok(LeaseStatus::Acked(*step)),
            Some((_, ending)) => Err(Refusal::LeaseGone { lease, why: ending.sentence() }),
            None if lease < self.next_lease => {
                Err(Refusal::LeaseGone { lease, why: "ended long ago".to_owned() })
            }
            None => Err(Refusal::LeaseUnknown { lease, granted: self.next_lease.0 }),
        }
    }

    fn digest_of(&self, uid: Uid) -> Option<u64> {
        match self.whereabouts_of(uid)? {
            Whereabouts::Kept { rollout, .. } => Some(rollout.digest),
            Whereabouts::Settled { digest, .. } => Some(digest),
        }
    }

    fn instance_of(&self, uid: Uid) -> Option<String> {
        self.groups.get(self.uids.get(&uid)?).map(|group| group.instance.to_string())
    }
}

/// Is a group fit to be trained on (`Ok`), never to be (`Err`), or is it too early to say?
fn judge(members: &[Member], stage: Stage, rules: &RunConfig) -> Option<Result<(), DropReason>> {
    match rules.validate.judge(members, stage, rules) {
        Verdict::Waiting => None,
        Verdict::Invalid(reason) => Some(Err(reason)),
        Verdict::Valid => match fit(members, rules) {
            Ok(()) => Some(Ok(())),
            // A growing group may yet get the items it lacks.
            Err(_) if stage == Stage::Growing => None,
            Err(reason) => Some(Err(reason)),
        },
    }
}

/// Would a reader get anything of this group? Where rollouts are sampled one by one, none is padded.
fn fit(members: &[Member], rules: &RunConfig) -> Result<(), DropReason> {
    match rules.mode {
        // A rewrite may turn any rollouts into any others.
        Mode::Queue if rules.transform == Transform::Hook => Ok(()),
        Mode::Queue => process(members, rules).map(|_| ()),
        Mode::Replay => passing(members, rules).map(|_| ()),
    }
}

impl Want {
    /// The fewest groups that could meet it.
    fn groups_min(self, group_size: usize) -> usize {
        match self {
            Self::All => 1,
            Self::Groups(n) => n.max(1),
            Self::Rows(n) => n.div_ceil(group_size).max(1),
        }
    }
}

/// The members of `group` that no row shows: those the filter took out.
fn unseen<'g>(group: &'g Group, rows: &[Row]) -> impl Iterator<Item = Uid> + use<'g> {
    let mut shown = vec![false; group.rollouts.len()];
    for row in rows {
        if let Some(seen) = shown.get_mut(row.member) {
            *seen = true;
        }
    }
    group.rollouts.iter().zip(shown).filter(|(_, seen)| !seen).map(|(rollout, _)| rollout.uid)
}
