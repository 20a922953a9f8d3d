//! The groups of a filter: what the rollouts of one prompt at one step were like together.
//!
//! Only rows that the filter lets through are counted. All groups are gathered in two passes over columns in memory
//! and sorted; what a page needs beside its figures is looked up for that page alone.

use super::choice::Chosen;
use super::columns::{Column, order};
use super::filter::tree::Source;
use super::kept::ChoiceKey;
use super::steps::column;
use super::sum::Sum;
use super::{Choice, Mistake, Query, QueryError, Sort};
use crate::catalog::RowNo;
use hashbrown::HashMap;
use rusqlite::OptionalExtension;
use serde_json::Value;
use std::ops::Range;

/// One group, as far as the filter lets its rollouts through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub group_id: i64,
    /// Of its first rollout, as the step and the source are.
    pub prompt_hash: Option<i64>,
    pub step: Option<i64>,
    pub data_source: Option<String>,
    pub n: u64,
    pub reward_mean: Option<f64>,
    /// Of the rewards there are, not an estimate for more of them.
    pub reward_std: Option<f64>,
    pub reward_min: Option<f64>,
    pub reward_max: Option<f64>,
    /// Rollouts with a reward above the threshold.
    pub passes: u64,
    /// Several rollouts, all with the same reward: there is nothing to learn from.
    pub zero_variance: bool,
    pub response_chars_mean: Option<f64>,
    pub tokens_mean: Option<f64>,
    pub truncated: u64,
    pub lag_mean: Option<f64>,
    /// The id of its first rollout.
    pub first: String,
}

/// A page of groups.
#[derive(Clone, Debug)]
pub struct Groups {
    pub total: u64,
    pub groups: Vec<Group>,
}

/// What groups can be sorted by.
pub const GROUP_SORTS: [&str; 16] = [
    "group_id",
    "prompt_hash",
    "step",
    "data_source",
    "n",
    "reward_mean",
    "reward_std",
    "reward_min",
    "reward_max",
    "passes",
    "zero_variance",
    "response_chars_mean",
    "tokens_mean",
    "truncated",
    "lag_mean",
    "first",
];

const READ: [&str; 9] = [
    "group_id",
    "reward",
    "response_chars",
    "tokens",
    "truncated",
    "lag",
    "step",
    "data_source",
    "prompt_hash",
];

/// A group before anything is looked up for it.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    group: i64,
    /// Position of its first rollout.
    first: u32,
    n: u32,
    passes: u32,
    truncated: u32,
    reward: Sum,
    /// Of the distances from the mean.
    squares: f64,
    chars: Mean,
    tokens: Mean,
    lag: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    n: u32,
}

impl Query {
    /// Groups `range` of those that a filter leaves, sorted; ties stay in the order of their first rows.
    pub fn groups(&self, choice: &Choice, pass_above: f64, range: Range<u64>) -> Result<Groups, QueryError> {
        check_sort(&choice.sort, &GROUP_SORTS, "groups")?;
        let unsorted = Choice { filter: choice.filter.clone(), sort: Vec::new() };
        let chosen = self.choose(&unsorted, &READ.map(Source::Column))?;
        let read = Read::of(&chosen)?;
        let key = ChoiceKey {
            generation: chosen.table.generation,
            filter: choice.filter.clone(),
            sort: choice.sort.clone(),
        };
        let all = self.groups_or(key, pass_above, || {
            let mut groups = read.gather(&chosen.positions, pass_above);
            sort(&mut groups, &choice.sort, &read);
            groups
        });
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(all.len());
        let wanted = all.get(at(range.start)..at(range.end)).unwrap_or_default();
        let groups = wanted.iter().map(|group| Ok(read.group(group, self.id_at(&chosen, group.first)?)));
        Ok(Groups { total: all.len() as u64, groups: groups.collect::<Result<_, QueryError>>()? })
    }

    /// The id of the row at a position; empty if it has gone in between.
    pub(super) fn id_at(&self, chosen: &Chosen, position: u32) -> Result<String, QueryError> {
        let Some(row) = row_at(chosen, position) else { return Ok(String::new()) };
        let connection = self.lend()?;
        let mut statement = connection.prepare_cached("SELECT lower(hex(id)) FROM rows WHERE row = ?")?;
        Ok(statement.query_row([row.0], |row| row.get(0)).optional()?.unwrap_or_default())
    }
}

pub(super) fn row_at(chosen: &Chosen, position: u32) -> Option<RowNo> {
    chosen.table.rows.get(position as usize).copied().map(RowNo)
}

pub(super) fn check_sort(sort: &[Sort], known: &[&str], what: &str) -> Result<(), Mistake> {
    match sort.iter().find(|by| !known.contains(&by.field.as_str())) {
        None => Ok(()),
        Some(Sort { field, .. }) => Err(Mistake {
            message: format!("{what} cannot be sorted by {field}; take one of {}", known.join(", ")),
            at: 0..field.len(),
            expected: known.iter().map(ToString::to_string).collect(),
        }),
    }
}

/// The columns that groups are made of.
struct Read<'a> {
    group: &'a Column,
    reward: &'a Column,
    chars: &'a Column,
    tokens: &'a Column,
    truncated: &'a Column,
    lag: &'a Column,
    step: &'a Column,
    source: &'a Column,
    prompt: &'a Column,
}

impl<'a> Read<'a> {
    fn of(chosen: &'a Chosen) -> Result<Self, QueryError> {
        let [group, reward, chars, tokens, truncated, lag, step, source, prompt] =
            READ.map(|name| column(chosen, &Source::Column(name)));
        Ok(Self {
            group: group?,
            reward: reward?,
            chars: chars?,
            tokens: tokens?,
            truncated: truncated?,
            lag: lag?,
            step: step?,
            source: source?,
            prompt: prompt?,
        })
    }

    /// In the order of their first rows.
    fn gather(&self, positions: &[u32], pass_above: f64) -> Vec<Gathered> {
        let mut groups: Vec<Gathered> = Vec::new();
        let mut places: HashMap<i64, u32> = HashMap::new();
        let mut place_of = Vec::with_capacity(positions.len());
        for position in positions {
            let at = *position as usize;
            let Some(id) = self.group.int(at) else { continue };
            let place = *places.entry(id).or_insert_with(|| {
                groups.push(Gathered::new(id, *position));
                u32::try_from(groups.len() - 1).unwrap_or(u32::MAX)
            });
            place_of.push((place, *position));
            let Some(group) = groups.get_mut(place as usize) else { continue };
            let reward = self.reward.number(at);
            group.n += 1;
            group.reward.add(reward);
            group.passes += u32::from(reward.is_some_and(|reward| reward > pass_above));
            group.truncated += u32::from(self.truncated.int(at) == Some(1));
            group.chars.add(self.chars.number(at));
            group.tokens.add(self.tokens.number(at));
            group.lag.add(self.lag.number(at));
        }
        // A second pass around the mean: the squares of large rewards would swallow their differences.
        for (place, position) in place_of {
            let Some(group) = groups.get_mut(place as usize) else { continue };
            if let (Some(mean), Some(reward)) = (group.reward.mean(), self.reward.number(position as usize)) {
                group.squares += (reward - mean).powi(2);
            }
        }
        groups
    }

    fn group(&self, of: &Gathered, first: String) -> Group {
        let at = of.first as usize;
        Group {
            group_id: of.group,
            prompt_hash: self.prompt.int(at),
            step: self.step.int(at),
            data_source: match self.source.value(at) {
                Value::String(source) => Some(source),
                _ => None,
            },
            n: u64::from(of.n),
            reward_mean: of.reward.mean(),
            reward_std: of.std(),
            reward_min: of.reward.least,
            reward_max: of.reward.most,
            passes: u64::from(of.passes),
            zero_variance: of.is_dead(),
            response_chars_mean: of.chars.mean(),
            tokens_mean: of.tokens.mean(),
            truncated: u64::from(of.truncated),
            lag_mean: of.lag.mean(),
            first,
        }
    }

    /// Numbers that sort as the groups do by one of [`GROUP_SORTS`].
    fn keys(&self, groups: &[Gathered], by: &str) -> Vec<Option<u64>> {
        let each = |of: &dyn Fn(&Gathered) -> Option<f64>| {
            groups.iter().map(|group| of(group).and_then(order::real_key)).collect()
        };
        let firsts = || groups.iter().map(|group| group.first).collect::<Vec<u32>>();
        match by {
            "group_id" => order::keys(self.group, &firsts()),
            "prompt_hash" => order::keys(self.prompt, &firsts()),
            "step" => order::keys(self.step, &firsts()),
            "data_source" => order::keys(self.source, &firsts()),
            "n" => each(&|group| Some(f64::from(group.n))),
            "reward_mean" => each(&|group| group.reward.mean()),
            "reward_std" => each(&Gathered::std),
            "reward_min" => each(&|group| group.reward.least),
            "reward_max" => each(&|group| group.reward.most),
            "passes" => each(&|group| Some(f64::from(group.passes))),
            "zero_variance" => each(&|group| Some(f64::from(u8::from(group.is_dead())))),
            "response_chars_mean" => each(&|group| group.chars.mean()),
            "tokens_mean" => each(&|group| group.tokens.mean()),
            "truncated" => each(&|group| Some(f64::from(group.truncated))),
            "lag_mean" => each(&|group| group.lag.mean()),
            // By where it stands: an id says nothing about an order.
            _ => each(&|group| Some(f64::from(group.first))),
        }
    }
}

fn sort(groups: &mut Vec<Gathered>, sort: &[Sort], read: &Read<'_>) {
    if sort.is_empty() {
        return;
    }
    let mut places: Vec<u32> = (0..u32::try_from(groups.len()).unwrap_or(u32::MAX)).collect();
    for by in sort.iter().rev() {
        let keys = read.keys(groups, &by.field);
        let keys: Vec<_> = places.iter().map(|at| keys.get(*at as usize).copied().flatten()).collect();
        order::by_keys(&keys, by.descending, &mut places);
    }
    *groups = places.into_iter().filter_map(|at| groups.get(at as usize).cloned()).collect();
}

impl Gathered {
    fn new(group: i64, first: u32) -> Self {
        Self {
            group,
            first,
            n: 0,
            passes: 0,
            truncated: 0,
            reward: Sum::default(),
            squares: 0.0,
            chars: Mean::default(),
            tokens: Mean::default(),
            lag: Mean::default(),
        }
    }

    fn std(&self) -> Option<f64> {
        (self.reward.n > 0).then(|| (self.squares / self.reward.n as f64).sqrt())
    }

    fn is_dead(&self) -> bool {
        self.n > 1 && self.reward.n == u64::from(self.n) && self.reward.least == self.reward.most
    }
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.n += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}
