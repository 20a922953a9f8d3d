//! A replay buffer in one process: groups in, batches out.
//!
//! Holds rollouts by reference, so that neither adding nor sampling copies a token.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::ReplayError;
use super::advantage::{Advantage, has_no_variance};
use super::census::Census;
use super::chance::Chance;
use super::limiter::{Flow, Limiter};
use super::pool::{EntryId, Facts, Pool};
use super::rules::Rules;
use crate::pipeline::DropReason;
use crate::rollout::Rollout;

#[derive(Clone, Debug)]
pub struct BufferConfig {
    pub rules: Rules,
    pub share: BatchShare,
    pub advantage: Advantage,
    pub zero_variance: ZeroVariance,
    pub limiter: Limiter,
    pub seed: u64,
}

/// Which part of the global batch this process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchShare {
    pub local_batch_size: NonZeroUsize,
    pub total_processes: NonZeroUsize,
    pub process_id: usize,
}

/// What becomes of groups whose rewards are all equal. They are counted either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroVariance {
    #[default]
    Keep,
    Drop,
}

/// The rollouts of one group, with their advantages if somebody else computed them.
#[derive(Clone, Debug)]
pub struct NewGroup {
    pub rollouts: Vec<Arc<Rollout>>,
    pub advantages: Option<Vec<f32>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    pub inserted: usize,
    /// Rollouts that were not kept, or that had to make room.
    pub dropped: BTreeMap<DropReason, u64>,
}

/// A row of a batch.
#[derive(Clone, Debug)]
pub struct Sampled {
    pub rollout: Arc<Rollout>,
    pub advantage: f32,
    /// Times it has been used, this one included.
    pub used: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    pub step: i64,
    pub size: usize,
    pub env_sizes: BTreeMap<String, usize>,
    pub flow: Flow,
    pub batches_sampled: u64,
    /// Used as often as they may be.
    pub retired: u64,
    pub dropped: BTreeMap<DropReason, u64>,
    pub groups: u64,
    pub groups_without_variance: u64,
    /// Rollouts held, by how many steps their weights are behind the trainer.
    pub ages: BTreeMap<i64, u64>,
    pub census: Census,
}

#[derive(Clone, Debug)]
struct Held {
    rollout: Arc<Rollout>,
    advantage: f32,
    /// The rollout's, which is somewhere else in memory.
    response_len: u32,
}

#[derive(Clone, Debug)]
pub struct Buffer {
    config: BufferConfig,
    pool: Pool<Held>,
    flow: Flow,
    draws: u64,
    retired: u64,
    dropped: BTreeMap<DropReason, u64>,
    groups: u64,
    groups_without_variance: u64,
    census: Census,
}

impl Buffer {
    pub fn new(config: BufferConfig) -> Result<Self, ReplayError> {
        config.rules.check()?;
        let BatchShare { total_processes, process_id, .. } = config.share;
        if process_id >= total_processes.get() {
            let expected = format!("below total_processes ({total_processes})");
            return Err(ReplayError::setting("process_id", process_id, &expected));
        }
        config.limiter.check_batch(config.share.global())?;
        Ok(Self {
            pool: Pool::new(config.rules.clone()),
            config,
            flow: Flow::default(),
            draws: 0,
            retired: 0,
            dropped: BTreeMap::new(),
            groups: 0,
            groups_without_variance: 0,
            census: Census::default(),
        })
    }

    pub fn config(&self) -> &BufferConfig {
        &self.config
    }

    pub fn step(&self) -> i64 {
        self.pool.step()
    }

    pub fn size(&self) -> usize {
        self.pool.size()
    }

    /// The trainer is at `step` now. Gives how many rollouts that made too old.
    pub fn set_step(&mut self, step: i64, now: f64) -> Result<usize, ReplayError> {
        if step < self.pool.step() {
            return Err(ReplayError::StepBack { step, last: self.pool.step() });
        }
        self.pool.set_step(step);
        Ok(self.expire(now))
    }

    /// The trainer went back to `step`: rollouts sampled with weights that are no more are dropped. How often
    /// the others were used is not undone; the yard does that.
    pub fn rewind(&mut self, step: i64, now: f64) -> usize {
        self.pool.set_step(step);
        let ahead: Vec<EntryId> = self.pool.ahead().collect();
        for id in &ahead {
            self.drop_entry(*id, DropReason::FutureStep);
        }
        ahead.len() + self.expire(now)
    }

    /// Adds all of these groups, or none of them.
    pub fn add(&mut self, groups: Vec<NewGroup>, now: f64) -> Result<Added, ReplayError> {
        let mut weighed = Vec::with_capacity(groups.len());
        for (nth, group) in groups.into_iter().enumerate() {
            weighed.push(self.weigh(nth, group)?);
        }
        let count: u64 = weighed.iter().map(|group| group.len() as u64).sum();
        self.config.limiter.check_insert(self.flow, count)?;
        let before = self.dropped.clone();
        let mut inserted = 0;
        for group in weighed {
            inserted += self.add_group(group, now);
        }
        let mut dropped = self.dropped.clone();
        dropped.retain(|reason, count| {
            *count -= before.get(reason).copied().unwrap_or_default();
            *count > 0
        });
        Ok(Added { inserted, dropped })
    }

    /// This process's rows of the next global batch, or `None` if there are too few, or the limiter says to wait.
    pub fn sample(&mut self, now: f64) -> Result<Option<Vec<Sampled>>, ReplayError> {
        self.expire(now);
        let share = self.config.share;
        let count = share.global();
        self.pool.check_batch(count, &self.census)?;
        if !self.config.limiter.can_sample(self.flow, count as u64) {
            return Ok(None);
        }
        let mut chance = Chance::of(self.config.seed, self.draws);
        let Some(picks) = self.pool.pick(count, &mut chance) else { return Ok(None) };
        self.draws += 1;
        self.flow.sampled += count as u64;
        self.fetch(&picks);
        self.count_trained(&picks);
        let mut rows: Vec<Sampled> = picks.into_iter().filter_map(|id| self.take(id)).collect();
        let mut advantages: Vec<f64> = rows.iter().map(|row| f64::from(row.advantage)).collect();
        self.config.advantage.over_batch(&mut advantages);
        for (row, advantage) in rows.iter_mut().zip(advantages) {
            row.advantage = advantage as f32;
        }
        let first = share.process_id * share.local_batch_size.get();
        Ok(Some(rows.into_iter().skip(first).take(share.local_batch_size.get()).collect()))
    }

    pub fn stats(&self) -> Stats {
        Stats {
            step: self.pool.step(),
            size: self.pool.size(),
            env_sizes: self.pool.env_sizes().map(|(env, size)| (env.to_owned(), size)).collect(),
            flow: self.flow,
            batches_sampled: self.draws,
            retired: self.retired,
            dropped: self.dropped.clone(),
            groups: self.groups,
            groups_without_variance: self.groups_without_variance,
            ages: self.pool.ages(),
            census: self.census.clone(),
        }
    }

    fn weigh(&self, nth: usize, group: NewGroup) -> Result<Vec<Held>, ReplayError> {
        let NewGroup { rollouts, advantages } = group;
        if rollouts.is_empty() {
            return Err(ReplayError::EmptyGroup { group: nth });
        }
        let id = |rollout: &Rollout| rollout.env_example_id.to_string();
        if let Some(rollout) = rollouts.iter().position(|rollout| rollout.metadata.is_missing()) {
            let id = rollouts.get(rollout).map(|rollout| id(rollout)).unwrap_or_default();
            return Err(ReplayError::MissingMetadata { group: nth, rollout, id });
        }
        let advantages = advantages.unwrap_or_else(|| {
            let rewards: Vec<f64> = rollouts.iter().map(|rollout| rollout.episode_reward).collect();
            self.config.advantage.of_group(&rewards).into_iter().map(|advantage| advantage as f32).collect()
        });
        if advantages.len() != rollouts.len() {
            let (rollouts, advantages) = (rollouts.len(), advantages.len());
            return Err(ReplayError::Advantages { group: nth, rollouts, advantages });
        }
        let held = rollouts.into_iter().zip(advantages).enumerate().map(|(rollout, (held, advantage))| {
            if advantage.is_finite() {
                let response_len = u32::try_from(held.response_len()).unwrap_or(u32::MAX);
                return Ok(Held { rollout: held, advantage, response_len });
            }
            Err(ReplayError::NotFinite { group: nth, rollout, id: id(&held), value: advantage })
        });
        held.collect()
    }

    fn add_group(&mut self, group: Vec<Held>, now: f64) -> usize {
        self.groups += 1;
        let rewards: Vec<f64> = group.iter().map(|held| held.rollout.episode_reward).collect();
        let dead = has_no_variance(&rewards);
        self.groups_without_variance += u64::from(dead);
        let mut inserted = 0;
        for held in group {
            let rollout = &held.rollout;
            let env = rollout.env_name.clone();
            self.census.of(&env).generated.add(rollout.response_len() as u64);
            let facts = facts(rollout, held.advantage);
            if dead && self.config.zero_variance == ZeroVariance::Drop {
                self.count_drop(DropReason::NoVariance);
            } else if let Some(reason) = self.pool.staleness(&facts, self.pool.step(), now) {
                self.count_drop(reason);
            } else {
                self.pool.insert(&env, facts, held);
                self.flow.inserted += 1;
                inserted += 1;
                self.make_room(&env);
            }
        }
        inserted
    }

    fn make_room(&mut self, env: &str) {
        while self.pool.env_size(env) > self.config.rules.capacity.get() {
            let Some(oldest) = self.pool.oldest(env).next() else { return };
            self.drop_entry(oldest, DropReason::Capacity);
        }
    }

    /// Reads what taking these will write: the processor fetches memory for many reads at once, but counts
    /// references one after the other.
    fn fetch(&self, picks: &[EntryId]) {
        let entries = picks.iter().filter_map(|id| self.pool.get(*id));
        let references: usize = entries.map(|entry| Arc::strong_count(&entry.item.rollout)).sum();
        std::hint::black_box(references);
    }

    /// One environment after the other: finding its counts costs more than counting a row.
    fn count_trained(&mut self, picks: &[EntryId]) {
        let length = |id: &EntryId| Some((self.pool.env_no(*id)?, self.pool.get(*id)?.item.response_len));
        let mut drawn: Vec<(u32, u32)> = picks.iter().filter_map(length).collect();
        drawn.sort_unstable();
        for same in drawn.chunk_by(|one, next| one.0 == next.0) {
            let Some(env) = same.first().and_then(|(no, _)| self.pool.env_name(*no)) else { continue };
            let sides = self.census.of(env);
            for (_, len) in same {
                sides.trained.add(u64::from(*len));
            }
        }
    }

    fn take(&mut self, id: EntryId) -> Option<Sampled> {
        self.pool.take(id);
        let entry = self.pool.get(id)?;
        let Held { rollout, advantage, .. } = entry.item.clone();
        let row = Sampled { advantage, used: entry.used, rollout };
        if !self.pool.is_live(id) {
            self.pool.remove(id);
            self.flow.removed += 1;
            self.retired += 1;
        }
        Some(row)
    }

    fn expire(&mut self, now: f64) -> usize {
        let stale: Vec<(EntryId, DropReason)> = self.pool.stale(self.pool.step(), now).collect();
        for (id, reason) in &stale {
            self.drop_entry(*id, *reason);
        }
        stale.len()
    }

    fn drop_entry(&mut self, id: EntryId, reason: DropReason) {
        if self.pool.remove(id).is_some() {
            self.flow.removed += 1;
            self.count_drop(reason);
        }
    }

    fn count_drop(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_insert(0) += 1;
    }
}

impl BatchShare {
    /// Rows of the batch that all processes draw together.
    pub fn global(&self) -> usize {
        self.local_batch_size.get() * self.total_processes.get()
    }
}

fn facts(rollout: &Rollout, advantage: f32) -> Facts {
    let newest = rollout.versions().spans().map(|(_, version)| i64::from(version)).max();
    Facts {
        weight_step: rollout.metadata.weight_step,
        newest_version: newest.filter(|version| *version >= 0).unwrap_or(rollout.metadata.weight_step),
        timestamp: rollout.metadata.timestamp,
        priority: advantage.abs(),
    }
}
