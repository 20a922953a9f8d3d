//! Curves: what the rollouts of each step were like.

use super::choice::{Chosen, field};
use super::columns::{Column, order};
use super::filter::tree::Source;
use super::sum::Sum;
use super::{Choice, Query, QueryError};
use hashbrown::HashMap;
use serde_json::Value;

/// One point of the curves.
#[derive(Clone, Debug, Default)]
pub struct StepPoint {
    pub step: i64,
    /// The series it belongs to, when asked by source or env.
    pub series: Option<String>,
    pub n: u64,
    pub n_prompts: u64,
    pub n_groups: u64,
    pub reward_mean: Option<f64>,
    /// Of the rewards there are, not an estimate for more of them.
    pub reward_std: Option<f64>,
    pub reward_min: Option<f64>,
    pub reward_max: Option<f64>,
    /// Share of groups with at least one reward above the threshold.
    pub pass_at_k: Option<f64>,
    pub response_chars_mean: Option<f64>,
    pub tokens_mean: Option<f64>,
    pub truncated: u64,
    /// Groups of several rollouts that all have the same reward.
    pub dead_groups: u64,
    pub lag_mean: Option<f64>,
}

const READ: [&str; 8] =
    ["step", "reward", "prompt_hash", "group_id", "response_chars", "tokens", "truncated", "lag"];

impl Query {
    /// The curves of a filter, by step and, if asked, by the values of one field. Rows without a step are in none.
    pub fn steps(
        &self,
        filter: &str,
        series: Option<&str>,
        pass_above: f64,
    ) -> Result<Vec<StepPoint>, QueryError> {
        let names = self.fields()?;
        let series = series.map(|name| field(&names, name)).transpose()?.map(|field| field.source);
        let also: Vec<Source> = READ.into_iter().map(Source::Column).chain(series.clone()).collect();
        let chosen = self.choose(&Choice { filter: filter.to_owned(), sort: Vec::new() }, &also)?;
        let columns = Read::of(&chosen, series.as_ref())?;
        Ok(columns.points(&chosen, pass_above))
    }
}

/// The columns that curves are made of.
struct Read<'a> {
    step: &'a Column,
    reward: &'a Column,
    prompt: &'a Column,
    group: &'a Column,
    chars: &'a Column,
    tokens: &'a Column,
    truncated: &'a Column,
    lag: &'a Column,
    series: Option<&'a Column>,
}

impl<'a> Read<'a> {
    fn of(chosen: &'a Chosen, series: Option<&Source>) -> Result<Self, QueryError> {
        let column = |source: &Source| column(chosen, source);
        let [step, reward, prompt, group, chars, tokens, truncated, lag] =
            READ.map(|name| column(&Source::Column(name)));
        Ok(Self {
            step: step?,
            reward: reward?,
            prompt: prompt?,
            group: group?,
            chars: chars?,
            tokens: tokens?,
            truncated: truncated?,
            lag: lag?,
            series: series.map(column).transpose()?,
        })
    }

    fn points(&self, chosen: &Chosen, pass_above: f64) -> Vec<StepPoint> {
        // Sorted by series and step, the rows of one point stand together.
        let mut positions: Vec<u32> = chosen.positions.to_vec();
        positions.retain(|at| self.step.int(*at as usize).is_some());
        order::sort(self.step, false, &mut positions);
        if let Some(series) = self.series {
            order::sort(series, false, &mut positions);
        }
        let cell = |at: &u32| {
            let at = *at as usize;
            (self.step.int(at), self.series.map(|series| code(series, at)))
        };
        positions
            .chunk_by(|one, other| cell(one) == cell(other))
            .map(|rows| self.point(rows, pass_above))
            .collect()
    }

    fn point(&self, rows: &[u32], pass_above: f64) -> StepPoint {
        let first = rows.first().map_or(0, |at| *at as usize);
        let mut groups: HashMap<i64, Group> = HashMap::new();
        let mut prompts: hashbrown::HashSet<i64> = hashbrown::HashSet::new();
        let [mut reward, mut chars, mut tokens, mut lag] = [Sum::default(); 4];
        let mut truncated = 0;
        for at in rows {
            let at = *at as usize;
            let value = self.reward.number(at);
            reward.add(value);
            chars.add(self.chars.number(at));
            tokens.add(self.tokens.number(at));
            lag.add(self.lag.number(at));
            truncated += u64::from(self.truncated.int(at) == Some(1));
            prompts.extend(self.prompt.int(at));
            if let Some(group) = self.group.int(at) {
                groups.entry(group).or_default().add(value);
            }
        }
        let rated = groups.values().filter(|group| group.best.is_some()).count();
        let passed = groups.values().filter(|group| group.best.is_some_and(|best| best > pass_above)).count();
        StepPoint {
            step: self.step.int(first).unwrap_or_default(),
            series: self.series.map(|series| match series.value(first) {
                Value::String(text) => text,
                other => other.to_string(),
            }),
            n: rows.len() as u64,
            n_prompts: prompts.len() as u64,
            n_groups: groups.len() as u64,
            reward_mean: reward.mean(),
            reward_std: self.deviation(rows, reward.mean()),
            reward_min: reward.least,
            reward_max: reward.most,
            pass_at_k: (rated > 0).then(|| passed as f64 / rated as f64),
            response_chars_mean: chars.mean(),
            tokens_mean: tokens.mean(),
            truncated,
            dead_groups: groups.values().filter(|group| group.is_dead()).count() as u64,
            lag_mean: lag.mean(),
        }
    }

    /// In a second pass around the mean: the squares of large rewards would swallow their differences.
    fn deviation(&self, rows: &[u32], mean: Option<f64>) -> Option<f64> {
        let mean = mean?;
        let mut squares = Sum::default();
        for at in rows {
            squares.add(self.reward.number(*at as usize).map(|reward| (reward - mean).powi(2)));
        }
        squares.mean().map(f64::sqrt)
    }
}

/// A column that figures are made of.
pub(super) fn column<'a>(chosen: &'a Chosen, source: &Source) -> Result<&'a Column, QueryError> {
    let missing = || QueryError::Sql(format!("{source:?} has values that are not of its type; use SQL"));
    chosen.table.column(source).map(|column| &**column).ok_or_else(missing)
}

/// The same for the same value, without making a text of it for every row.
fn code(column: &Column, at: usize) -> Option<u64> {
    match column {
        Column::Text(words) => words.codes.get(at).map(|code| u64::from(*code)),
        Column::Mixed(mixed) => mixed.codes.get(at).map(|code| u64::from(*code)),
        Column::Real(all) => all.get(at).and_then(|number| order::real_key(*number)),
        _ => column.int(at).map(order::int_key),
    }
}

#[derive(Debug, Default)]
struct Group {
    n: u64,
    unrated: bool,
    best: Option<f64>,
    worst: Option<f64>,
}

impl Group {
    fn add(&mut self, reward: Option<f64>) {
        self.n += 1;
        match reward {
            None => self.unrated = true,
            Some(reward) => {
                self.best = Some(self.best.map_or(reward, |best| best.max(reward)));
                self.worst = Some(self.worst.map_or(reward, |worst| worst.min(reward)));
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.n > 1 && !self.unrated && self.best == self.worst
    }
}
