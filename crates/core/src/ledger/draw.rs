//! What a run in replay mode decides: who enters the pool, who leaves it, who is drawn.

use smallvec::smallvec;

use super::command::{Draw, LeaseTerms, Refusal, deadline};
use super::decide::Events;
use super::event::{Admitted, Event, Origin};
use super::group::Uid;
use super::lease::Pick;
use super::replay::{Replay, facts};
use super::{LeaseStatus, Ledger};
use crate::ids::{GroupNo, LeaseNo, Time};
use crate::pipeline::{self, DropReason};
use crate::replay::{Chance, Flow, ReplayError};
use crate::run_config::Mode;
use crate::wire::item::Item;

/// Drops in one command, so that a great many at once do not hold up writers.
const DROPS_PER_COMMAND: usize = 4096;

impl Ledger {
    pub(super) fn replaying(&self, what: &'static str) -> Result<&Replay, Refusal> {
        let refusal = Refusal::WrongMode { mode: "queue", what, needed: "replay" };
        self.replay.as_deref().ok_or(refusal)
    }

    /// What is kept of where an item came from; `None` in a run that does not sample.
    pub(super) fn origin(
        &self,
        item: &Item,
        version: Option<u64>,
        now: Time,
    ) -> Result<Option<Origin>, Refusal> {
        let Some(replay) = self.replay.as_deref() else { return Ok(None) };
        if let Some(error) = &item.source.wrong {
            return Err(Refusal::Item(error.clone()));
        }
        let uid = || item.uid.clone();
        let version = version.ok_or_else(|| Refusal::NoVersion { uid: uid() })?;
        let step = replay.pool.step();
        if i64::try_from(version).unwrap_or(i64::MAX) > step {
            return Err(Refusal::FutureStep { uid: uid(), version, step });
        }
        Ok(Some(Origin {
            env: item.source.env.clone().unwrap_or_default(),
            timestamp: item.source.timestamp.unwrap_or_else(|| secs(now)),
            len: item.source.response_len.unwrap_or_default(),
            group_size: item.source.group_size,
        }))
    }

    /// May another group of so many be begun? One that was begun may always be completed.
    pub(super) fn check_pace(&self, group_len: usize) -> Result<(), Refusal> {
        let Some(replay) = self.replay.as_deref() else { return Ok(()) };
        Ok(self.config.limiter()?.check_insert(replay.flow, group_len as u64)?)
    }

    /// A group that is worth training on goes into the pool, with `new` as its last member.
    pub(super) fn pool_group(&self, no: GroupNo, new: Option<&Admitted>, now: Time) -> Events {
        let Some(replay) = self.replay.as_deref() else { return smallvec![] };
        let held = self.groups.get(&no).map(|group| group.rollouts.as_slice()).unwrap_or_default();
        let mut candidates: Vec<(Uid, pipeline::Member)> =
            held.iter().map(|rollout| (rollout.uid, rollout.member())).collect();
        candidates.extend(
            new.map(|new| {
                (Uid::of(&new.uid), pipeline::Member { reward: new.reward, answered: new.answered })
            }),
        );
        let (passing, filtered): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|(_, member)| self.config.filter.passes(member, &self.config));
        let rewards: Vec<f64> = passing.iter().map(|(_, member)| member.reward).collect();
        let advantages = self.config.advantage.of_group(&rewards);
        let dropped = |uid, reason| Event::RolloutDropped { at: now, group: no, uid, reason };
        let mut events: Events =
            filtered.into_iter().map(|(uid, _)| dropped(uid, DropReason::Filtered)).collect();
        let mut members = Vec::with_capacity(passing.len());
        for ((uid, _), advantage) in passing.into_iter().zip(advantages) {
            let facts = match (replay.members.get(&uid), new) {
                (Some(member), _) => member.facts(),
                (None, Some(new)) => {
                    let made_at = new.origin.as_ref().map_or(0.0, |origin| origin.timestamp);
                    facts(new.version.unwrap_or(u64::MAX), made_at, 0.0)
                }
                (None, None) => continue,
            };
            match replay.pool.staleness(&facts, replay.pool.step(), secs(now)) {
                Some(reason) => events.push(dropped(uid, reason)),
                None => members.push((uid, advantage as f32)),
            }
        }
        if !members.is_empty() {
            events.push(Event::Pooled { at: now, group: no, members });
        }
        events
    }

    /// What must leave the pool with the trainer at `step`: the stale, those of weights that a rewind took away, and
    /// the oldest of crowded environments. Not all at once, if they are very many.
    pub(super) fn overdue(&self, step: i64, now: Time) -> Events {
        let Some(replay) = self.replay.as_deref() else { return smallvec![] };
        let ahead = replay.pool.ahead().map(|id| (id, DropReason::FutureStep));
        let stale: Vec<_> = replay.pool.stale(step, secs(now)).chain(ahead).take(DROPS_PER_COMMAND).collect();
        let drop = |(id, reason)| {
            let uid = replay.pool.get(id)?.item;
            let group = replay.members.get(&uid)?.group;
            Some(Event::RolloutDropped { at: now, group, uid, reason })
        };
        if !stale.is_empty() {
            let mut drops: Vec<(Uid, Event)> = stale
                .into_iter()
                .filter_map(|(id, reason)| Some((replay.pool.get(id)?.item, drop((id, reason))?)))
                .collect();
            // The pool gives those of one step in no order that a snapshot would keep.
            drops.sort_unstable_by_key(|(uid, _)| *uid);
            // One of lost weights may be too old besides.
            drops.dedup_by_key(|(uid, _)| *uid);
            return drops.into_iter().map(|(_, event)| event).collect();
        }
        let capacity = replay.pool.rules().capacity.get();
        let crowd = replay.crowded.iter().flat_map(|env| {
            let surplus = replay.pool.env_size(env).saturating_sub(capacity);
            replay.pool.oldest(env).take(surplus).map(|id| (id, DropReason::Capacity))
        });
        crowd.take(DROPS_PER_COMMAND).filter_map(drop).collect()
    }

    pub(super) fn decide_step(&self, step: u64, now: Time) -> Result<Events, Refusal> {
        let last = self.replaying("be told a step")?.pool.step();
        let next = i64::try_from(step).unwrap_or(i64::MAX);
        if next < last {
            return Err(ReplayError::StepBack { step: next, last }.into());
        }
        if next == last {
            return Ok(smallvec![]);
        }
        let mut events: Events = smallvec![Event::StepSet { at: now, step }];
        events.extend(self.overdue(next, now));
        Ok(events)
    }

    /// The lease of the batch that was drawn for a step, while it is kept.
    pub fn batch_of(&self, step: u64) -> Option<LeaseNo> {
        let of_step =
            |lease: &super::Lease| lease.sample.as_ref().is_some_and(|sample| sample.step == Some(step));
        self.leases.iter().rev().find(|(_, lease)| of_step(lease)).map(|(no, _)| *no)
    }

    /// Events without a [`Event::Sampled`] have to be applied, and the question asked again; none at all means that
    /// there is nothing to draw yet, or that the batch was drawn before ([`Ledger::batch_of`]).
    pub(super) fn decide_sample(&self, draw: Draw, terms: &LeaseTerms, now: Time) -> Result<Events, Refusal> {
        let replay = self.replaying("be sampled")?;
        let until = deadline(now, terms.secs.unwrap_or(self.config.lease_seconds))?;
        if let Some(step) = draw.step {
            if let Some(lease) = self.batch_of(step) {
                let found =
                    self.leases.get(&lease).and_then(|lease| lease.sample.as_ref()).map(|s| s.picks.len());
                return match found {
                    Some(found) if found != draw.count => {
                        Err(Refusal::BatchDiffers { step, found, count: draw.count })
                    }
                    _ => Ok(smallvec![]),
                };
            }
            let moved = self.decide_step(step, now)?;
            if !moved.is_empty() {
                return Ok(moved);
            }
        }
        let overdue = self.overdue(replay.pool.step(), now);
        if !overdue.is_empty() {
            return Ok(overdue);
        }
        let limiter = self.config.limiter()?;
        replay.pool.check_batch(draw.count, &replay.census)?;
        limiter.check_batch(draw.count)?;
        let size = replay.pool.size() as u64;
        // What can be sampled is the pool, not groups that are still open.
        let flow = Flow { removed: replay.flow.inserted.saturating_sub(size), ..replay.flow };
        if !limiter.can_sample(flow, draw.count as u64) {
            return Ok(smallvec![]);
        }
        let mut chance = Chance::of(self.config.seed, replay.draws);
        let Some(picked) = replay.pool.pick(draw.count, &mut chance) else { return Ok(smallvec![]) };
        let pick = |id| {
            let entry = replay.pool.get(id)?;
            let group = replay.members.get(&entry.item)?.group;
            Some(Pick { group, uid: entry.item, used: entry.used + 1 })
        };
        Ok(smallvec![Event::Sampled {
            at: now,
            lease: self.next_lease,
            picks: picked.into_iter().filter_map(pick).collect(),
            step: draw.step,
            draw: replay.draws,
            until,
            reader: terms.reader.clone(),
        }])
    }

    /// A mode can only be changed while nothing would have to change with it.
    pub(super) fn check_mode(&self, mode: Mode) -> Result<(), Refusal> {
        let (items, _) = self.books.kept();
        let leases = self.leases.values().any(|lease| matches!(lease.status, LeaseStatus::Out(_)));
        if mode != self.config.mode && (items > 0 || leases) {
            return Err(Refusal::ModeFixed { items });
        }
        Ok(())
    }
}

pub(super) fn secs(time: Time) -> f64 {
    time.0 as f64 / 1000.0
}
