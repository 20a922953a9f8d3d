//! The rollouts that can be sampled: by environment, in the order they came, none of them stale.
//!
//! An entry is *live* while it can be picked. One that was used as often as it may be *rests*: it can no longer
//! be picked, but keeps its place in the order, because a lease that comes back or a rewind makes it live
//! again. Only live entries are in the indexes of age, so that what expires is found without looking at the
//! rest, and picking looks at nothing but what it picks.
//!
//! The pool knows no clock and decides nothing: it says what is stale ([`Pool::stale`]) and what it would pick
//! ([`Pool::pick`]), and its owner does it.

use std::collections::BTreeMap;

use super::ReplayError;
use super::buckets::Buckets;
use super::census::Census;
use super::chance::Chance;
use super::draw::{Priorities, Recency, SumTree, Uniform, without_replacement};
use super::rules::{Balance, Rules, Select};
use super::shelf::Shelf;
use crate::pipeline::DropReason;

/// An entry of a pool, until it is removed; then another may get the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(u32);

/// What decides on an entry's freshness and chances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The step whose weights sampled it.
    pub weight_step: i64,
    /// The newest weights that sampled one of its tokens: `weight_step`, where nobody said.
    pub newest_version: i64,
    /// When it was made, in seconds since 1970.
    pub timestamp: f64,
    /// For [`Select::Prioritised`]: 0 or above.
    pub priority: f32,
}

#[derive(Clone, Debug)]
pub struct Entry<T> {
    pub item: T,
    pub facts: Facts,
    /// Times it was taken and not given back.
    pub used: u32,
    env: u32,
    place: u32,
}

#[derive(Clone, Debug)]
pub struct Pool<T> {
    rules: Rules,
    /// The trainer's.
    step: i64,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    envs: Vec<Environment>,
    /// In the order of their names, so that a pool that was put together again picks the same.
    names: BTreeMap<Box<str>, u32>,
    /// The same the other way round.
    labels: Vec<Box<str>>,
    /// Live entries by the last step at which they are fresh, and by the millisecond they were made in.
    by_step: Buckets,
    by_time: Buckets,
    /// Live entries by the step whose weights sampled them.
    by_weights: BTreeMap<i64, u64>,
    live: usize,
}

/// The entries of one environment, live and resting, in the order they came.
#[derive(Clone, Debug, Default)]
struct Environment {
    shelf: Shelf,
    /// By place; those of entries that were removed are never looked at.
    ids: Vec<u32>,
    present: usize,
    /// By place, for [`Select::Prioritised`] only.
    weights: SumTree,
}

/// Places of removed entries are kept until there are this many more than entries.
const HOLES_MAX: usize = 1024;

impl<T> Pool<T> {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            step: 0,
            entries: Vec::new(),
            free: Vec::new(),
            envs: Vec::new(),
            names: BTreeMap::new(),
            labels: Vec::new(),
            by_step: Buckets::default(),
            by_time: Buckets::default(),
            by_weights: BTreeMap::new(),
            live: 0,
        }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The trainer's step.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// Changes nothing else: what is stale now is for [`Pool::stale`] to say.
    pub fn set_step(&mut self, step: i64) {
        self.step = step;
    }

    /// Entries that can be picked.
    pub fn size(&self) -> usize {
        self.live
    }

    pub fn env_size(&self, env: &str) -> usize {
        self.environment(env).map_or(0, |env| env.shelf.taken())
    }

    /// Every environment that ever had an entry, by name, with what can be picked of it.
    pub fn env_sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.names.keys().map(|name| (&**name, self.env_size(name)))
    }

    /// Live entries by how many steps their weights are behind the trainer.
    pub fn ages(&self) -> BTreeMap<i64, u64> {
        self.by_weights.iter().map(|(weights, count)| (self.step.saturating_sub(*weights), *count)).collect()
    }

    /// When the oldest live entry was made, to the millisecond, in seconds since 1970.
    pub fn oldest_timestamp(&self) -> Option<f64> {
        Some(self.by_time.first_key()? as f64 / 1000.0)
    }

    pub fn get(&self, id: EntryId) -> Option<&Entry<T>> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    /// The number of an entry's environment.
    pub fn env_no(&self, id: EntryId) -> Option<u32> {
        Some(self.get(id)?.env)
    }

    pub fn env_name(&self, no: u32) -> Option<&str> {
        self.labels.get(no as usize).map(|label| &**label)
    }

    pub fn is_live(&self, id: EntryId) -> bool {
        let place = self.get(id).map(|entry| (entry.env, entry.place));
        place.is_some_and(|(env, place)| {
            self.envs.get(env as usize).is_some_and(|env| env.shelf.is_taken(place as usize))
        })
    }

    /// Every entry, live or resting, by environment and in the order they came.
    pub fn entries(&self) -> impl Iterator<Item = (&str, EntryId, &Entry<T>)> {
        self.names.iter().flat_map(move |(name, index)| {
            let env = self.envs.get(*index as usize);
            let ids = env.into_iter().flat_map(|env| env.ids.iter().enumerate());
            ids.filter_map(move |(place, id)| {
                let entry = self.entries.get(*id as usize)?.as_ref()?;
                // The number may have gone to another entry since.
                let same = entry.env == *index && entry.place as usize == place;
                same.then_some((&**name, EntryId(*id), entry))
            })
        })
    }

    /// Why a rollout with these facts could not be picked with the trainer at `step`.
    pub fn staleness(&self, facts: &Facts, step: i64, now: f64) -> Option<DropReason> {
        if facts.weight_step > step {
            return Some(DropReason::FutureStep);
        }
        if self.rules.step_delay_max.is_some_and(|delay| last_step(facts.weight_step, delay) < step) {
            return Some(DropReason::StaleStep);
        }
        if self.until_step(facts) < step {
            return Some(DropReason::StaleTokens);
        }
        let aged = self.rules.age_secs_max.is_some_and(|age| facts.timestamp <= now - age);
        aged.then_some(DropReason::StaleTime)
    }

    /// The live entries that could not be picked with the trainer at `step`, each with the reason. Costs what it
    /// returns. Those ahead of the trainer are for [`Pool::ahead`].
    pub fn stale(&self, step: i64, now: f64) -> impl Iterator<Item = (EntryId, DropReason)> + '_ {
        let by_step = self.by_step.up_to(step.saturating_sub(1));
        let due = self.rules.age_secs_max.map(|age| now - age).unwrap_or(f64::NEG_INFINITY);
        let by_time = self.by_time.up_to(millis(due)).filter(move |id| {
            // One that is stale by its step too was given already.
            self.entry(*id)
                .is_some_and(|entry| entry.facts.timestamp <= due && self.until_step(&entry.facts) >= step)
        });
        by_step.chain(by_time).filter_map(move |id| {
            let entry = self.entry(id)?;
            Some((EntryId(id), self.staleness(&entry.facts, step, now)?))
        })
    }

    /// The live entries of weights that the trainer does not have, which only going back leaves behind. Where there
    /// are any, this looks at all entries.
    pub fn ahead(&self) -> impl Iterator<Item = EntryId> + '_ {
        let any = self.has_ahead();
        let live = self.entries().take_while(move |_| any).filter(|(_, id, _)| self.is_live(*id));
        live.filter(|(_, _, entry)| entry.facts.weight_step > self.step).map(|(_, id, _)| id)
    }

    /// Whether a live entry is too many steps behind the trainer, or ahead of it.
    pub fn has_wrong_steps(&self) -> bool {
        self.by_step.first_key().is_some_and(|until| until < self.step) || self.has_ahead()
    }

    fn has_ahead(&self) -> bool {
        self.by_weights.last_key_value().is_some_and(|(weights, _)| *weights > self.step)
    }

    /// When the next live entry is too old, if any ever is; to the millisecond, and not before.
    pub fn next_expiry(&self) -> Option<f64> {
        let age = self.rules.age_secs_max?;
        Some((self.by_time.first_key()? as f64 + 1.0) / 1000.0 + age)
    }

    /// The live entries of an environment, those that came first first.
    pub fn oldest(&self, env: &str) -> impl Iterator<Item = EntryId> + '_ {
        let env = self.environment(env);
        // By rank: places that are free for good pile up before the first that is taken.
        env.into_iter().flat_map(|env| {
            let places = (0..env.shelf.taken()).filter_map(|rank| env.shelf.select(rank));
            places.filter_map(|place| env.ids.get(place).copied().map(EntryId))
        })
    }

    /// Puts in an entry, live, as the newest of its environment.
    pub fn insert(&mut self, env: &str, facts: Facts, item: T) -> EntryId {
        let index = match self.names.get(env) {
            Some(index) => *index,
            None => {
                let index = self.envs.len() as u32;
                self.envs.push(Environment::default());
                self.names.insert(env.into(), index);
                self.labels.push(env.into());
                index
            }
        };
        self.close_holes(index);
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        let mut place = 0;
        if let Some(env) = self.envs.get_mut(index as usize) {
            place = env.shelf.push() as u32;
            env.ids.push(id);
            env.present += 1;
        }
        if let Some(slot) = self.entries.get_mut(id as usize) {
            *slot = Some(Entry { item, facts, used: 0, env: index, place });
        }
        self.set_live(id, true);
        EntryId(id)
    }

    /// Sets how often an entry was used; as when it was taken so many times.
    pub fn set_used(&mut self, id: EntryId, used: u32) {
        let max = self.rules.max_samples;
        let Some(entry) = self.entry_mut(id.0) else { return };
        entry.used = used;
        self.set_live(id.0, max.is_none_or(|max| used < max.get()));
    }

    pub fn remove(&mut self, id: EntryId) -> Option<Entry<T>> {
        self.set_live(id.0, false);
        let entry = self.entries.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        if let Some(env) = self.envs.get_mut(entry.env as usize) {
            env.present -= 1;
        }
        Some(entry)
    }

    /// Uses an entry once more; used up, it rests.
    pub fn take(&mut self, id: EntryId) {
        if let Some(used) = self.get(id).map(|entry| entry.used) {
            self.set_used(id, used.saturating_add(1));
        }
    }

    /// Undoes one use.
    pub fn give_back(&mut self, id: EntryId) {
        if let Some(used) = self.get(id).map(|entry| entry.used) {
            self.set_used(id, used.saturating_sub(1));
        }
    }

    /// `count` different live entries, in the order they were drawn; `None` if there are fewer.
    ///
    /// Whether they are stale is not looked at: take out what [`Pool::stale`] names first.
    pub fn pick(&self, count: usize, chance: &mut Chance) -> Option<Vec<EntryId>> {
        if count > self.live {
            return None;
        }
        let envs: Vec<&Environment> = self
            .names
            .values()
            .filter_map(|index| self.envs.get(*index as usize))
            .filter(|env| env.shelf.taken() > 0)
            .collect();
        let sizes: Vec<usize> = envs.iter().map(|env| env.shelf.taken()).collect();
        let order = match self.rules.balance {
            Balance::Proportional => proportional(sizes, count, chance),
            Balance::Equal => equal(&sizes, count, chance),
        };
        let mut counts = vec![0; envs.len()];
        for env in &order {
            if let Some(count) = counts.get_mut(*env) {
                *count += 1;
            }
        }
        let mut picked: Vec<_> = envs
            .iter()
            .zip(counts)
            .map(|(env, count)| env.pick(count, self.rules.select, chance).into_iter())
            .collect();
        // In the order in which the environments were drawn: any part of the batch is a fair one.
        Some(order.into_iter().filter_map(|env| picked.get_mut(env)?.next()).map(EntryId).collect())
    }

    /// Waiting for a batch helps only while some environment has room; `census` knows every one there ever was, and
    /// one that is empty now may fill again.
    pub fn check_batch(&self, batch: usize, census: &Census) -> Result<(), ReplayError> {
        let (size, capacity) = (self.live, self.rules.capacity.get());
        let envs = census.envs().count();
        let full = size < batch && envs > 0 && census.envs().all(|(env, _)| self.env_size(env) >= capacity);
        if full { Err(ReplayError::BatchTooLarge { batch, envs, capacity, size }) } else { Ok(()) }
    }

    fn environment(&self, env: &str) -> Option<&Environment> {
        self.envs.get(*self.names.get(env)? as usize)
    }

    fn entry(&self, id: u32) -> Option<&Entry<T>> {
        self.entries.get(id as usize)?.as_ref()
    }

    fn entry_mut(&mut self, id: u32) -> Option<&mut Entry<T>> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    /// The last step of the trainer at which a rollout is fresh.
    fn until_step(&self, facts: &Facts) -> i64 {
        let whole = self.rules.step_delay_max.map(|delay| last_step(facts.weight_step, delay));
        let tokens = self.rules.token_delay_max.map(|delay| last_step(facts.newest_version, delay));
        whole.into_iter().chain(tokens).min().unwrap_or(i64::MAX)
    }

    fn set_live(&mut self, id: u32, live: bool) {
        let Some(entry) = self.entry(id) else { return };
        let (place, facts, index) = (entry.place as usize, entry.facts, entry.env as usize);
        let (step, time) = (self.until_step(&facts), millis(facts.timestamp));
        let Some(env) = self.envs.get_mut(index) else { return };
        if env.shelf.is_taken(place) == live {
            return;
        }
        env.shelf.set(place, live);
        if let Select::Prioritised { exponent } = self.rules.select {
            env.weights.set(place, if live { weight(facts.priority, exponent) } else { 0.0 });
        }
        if live {
            self.by_step.insert(step, id);
            self.by_time.insert(time, id);
            *self.by_weights.entry(facts.weight_step).or_default() += 1;
            self.live += 1;
        } else {
            self.by_step.remove(step, id);
            self.by_time.remove(time, id);
            self.live -= 1;
            if let Some(count) = self.by_weights.get_mut(&facts.weight_step) {
                *count -= 1;
                if *count == 0 {
                    self.by_weights.remove(&facts.weight_step);
                }
            }
        }
    }

    /// Gives the entries of an environment new places when most places belong to entries that are gone.
    fn close_holes(&mut self, index: u32) {
        let Some(env) = self.envs.get_mut(index as usize) else { return };
        if env.ids.len() <= 2 * env.present + HOLES_MAX {
            return;
        }
        let old = std::mem::take(env);
        env.ids.reserve_exact(old.present + old.present / 4);
        for (place, id) in old.ids.into_iter().enumerate() {
            let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else { continue };
            // The number may have gone to another entry since.
            if entry.env != index || entry.place as usize != place {
                continue;
            }
            let new = env.shelf.push();
            env.shelf.set(new, old.shelf.is_taken(place));
            if let Select::Prioritised { .. } = self.rules.select {
                env.weights.set(new, old.weights.weight(place));
            }
            entry.place = new as u32;
            env.ids.push(id);
            env.present += 1;
        }
    }
}

impl Environment {
    fn pick(&self, count: usize, select: Select, chance: &mut Chance) -> Vec<u32> {
        let live = self.shelf.taken();
        let ranks = match select {
            Select::Recency { alpha } => without_replacement(&Recency::new(live, alpha), count, chance),
            Select::Uniform => without_replacement(&Uniform { len: live }, count, chance),
            Select::OldestFirst => (0..count).collect(),
            Select::NewestFirst => (live - count..live).rev().collect(),
            Select::Prioritised { .. } => {
                let weights = Priorities { tree: &self.weights, shelf: &self.shelf };
                without_replacement(&weights, count, chance)
            }
        };
        let places = ranks.into_iter().filter_map(|rank| self.shelf.select(rank));
        places.filter_map(|place| self.ids.get(place).copied()).collect()
    }
}

/// Which environment each row comes from: drawn one after the other from all rollouts that are left.
fn proportional(mut left: Vec<usize>, count: usize, chance: &mut Chance) -> Vec<usize> {
    let mut all: usize = left.iter().sum();
    let mut order = Vec::with_capacity(count);
    for _ in 0..count {
        let mut nth = chance.below(all);
        for (env, size) in left.iter_mut().enumerate() {
            if nth < *size {
                *size -= 1;
                all -= 1;
                order.push(env);
                break;
            }
            nth -= *size;
        }
    }
    order
}

/// The same, with one of each environment in turn until it has no more. Who comes first is drawn.
fn equal(sizes: &[usize], count: usize, chance: &mut Chance) -> Vec<usize> {
    let mut left = sizes.to_vec();
    let mut order = Vec::with_capacity(count);
    while order.len() < count && left.iter().any(|size| *size > 0) {
        let mut round: Vec<usize> = Vec::with_capacity(left.len());
        round.extend(left.iter().enumerate().filter(|(_, size)| **size > 0).map(|(env, _)| env));
        while let Some(last) = round.len().checked_sub(1)
            && order.len() < count
        {
            let env = round.swap_remove(chance.below(last + 1));
            if let Some(size) = left.get_mut(env) {
                *size -= 1;
            }
            order.push(env);
        }
    }
    order
}

fn weight(priority: f32, exponent: f64) -> f64 {
    // A rollout without any weight could never leave by being used.
    libm::pow(f64::from(priority), exponent).max(f64::MIN_POSITIVE)
}

fn last_step(weight_step: i64, delay: u64) -> i64 {
    weight_step.saturating_add_unsigned(delay)
}

/// Casts saturate, so that any finite time has its place.
fn millis(secs: f64) -> i64 {
    (secs * 1000.0).floor() as i64
}
