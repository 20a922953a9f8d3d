//! Two catalogs side by side, prompt by prompt.
//!
//! Runs rarely see the same prompts equally often, so means over all rollouts would compare the prompts as much as
//! the models. Here every prompt that both have counts once: its mean there minus its mean here.

use super::choice::Chosen;
use super::columns::order;
use super::filter::tree::Source;
use super::groups::{check_sort, row_at};
use super::steps::column;
use super::sum::Sum;
use super::{Choice, Query, QueryError, Sort};
use crate::catalog::RowNo;
use crate::records::Channel;
use hashbrown::HashMap;
use std::ops::Range;

/// What two catalogs have in common under one filter. Differences are there minus here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Prompts that both have.
    pub shared: u64,
    pub only_here: u64,
    pub only_there: u64,
    /// Of the means of the prompts that have rewards on both sides, as all that follows.
    pub mean_here: Option<f64>,
    pub mean_there: Option<f64>,
    pub delta_mean: Option<f64>,
    /// The 95% interval of `delta_mean`, by the normal approximation; none with fewer than two prompts.
    pub delta_low: Option<f64>,
    pub delta_high: Option<f64>,
    pub better: u64,
    pub worse: u64,
    pub same: u64,
    /// A page of the prompts that both have.
    pub pairs: Vec<Pair>,
}

/// One prompt that both have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    pub prompt_hash: i64,
    /// The beginning of what the user said last before the first answer.
    pub prompt: String,
    pub here: Side,
    pub there: Side,
    /// None where one side has no rewards.
    pub delta: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub n: u64,
    pub reward_mean: Option<f64>,
    /// The id of the first rollout with the highest reward, or of the first if none has any.
    pub best: String,
}

/// What pairs can be sorted by.
pub const COMPARE_SORTS: [&str; 7] =
    ["delta", "n", "n_here", "n_there", "reward_here", "reward_there", "prompt_hash"];

const SNIPPET_CHARS: usize = 200;
/// 97.5% of a normal distribution lie below so many deviations.
const DEVIATIONS: f64 = 1.959_963_984_540_054;

/// All rollouts of one prompt on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    n: u64,
    reward: Sum,
    best: u32,
}

#[derive(Clone, Copy, Debug)]
struct Both {
    prompt: i64,
    here: Seen,
    there: Seen,
}

impl Query {
    /// The prompts that both catalogs have under a filter, and pairs `range` of them in order.
    pub fn compare(&self, there: &Query, choice: &Choice, range: Range<u64>) -> Result<Compared, QueryError> {
        check_sort(&choice.sort, &COMPARE_SORTS, "pairs")?;
        let (chosen_here, here) = self.by_prompt(&choice.filter)?;
        let (chosen_there, there_by_prompt) = there.by_prompt(&choice.filter)?;
        let mut both: Vec<Both> = here
            .iter()
            .filter_map(|(prompt, here)| {
                Some(Both { prompt: *prompt, here: *here, there: *there_by_prompt.get(prompt)? })
            })
            .collect();
        // Maps have no order; by the first rollout here, ties stay where a reader has seen them.
        both.sort_unstable_by_key(|pair| (pair.here.best, pair.prompt));
        sort(&mut both, &choice.sort);
        let mut compared = figures(&both);
        compared.only_here = (here.len() - both.len()) as u64;
        compared.only_there = (there_by_prompt.len() - both.len()) as u64;
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(both.len());
        for pair in both.get(at(range.start)..at(range.end)).unwrap_or_default() {
            let side = |query: &Query, chosen: &Chosen, seen: &Seen| -> Result<Side, QueryError> {
                let best = query.id_at(chosen, seen.best)?;
                Ok(Side { n: seen.n, reward_mean: seen.reward.mean(), best })
            };
            let prompt = row_at(&chosen_here, pair.here.best).map(|row| self.snippet(row)).transpose()?;
            compared.pairs.push(Pair {
                prompt_hash: pair.prompt,
                prompt: prompt.unwrap_or_default(),
                here: side(self, &chosen_here, &pair.here)?,
                there: side(there, &chosen_there, &pair.there)?,
                delta: pair.delta(),
            });
        }
        Ok(compared)
    }

    fn by_prompt(&self, filter: &str) -> Result<(Chosen, HashMap<i64, Seen>), QueryError> {
        let choice = Choice { filter: filter.to_owned(), sort: Vec::new() };
        let [prompt, reward] = ["prompt_hash", "reward"].map(Source::Column);
        let chosen = self.choose(&choice, &[prompt.clone(), reward.clone()])?;
        let (prompt, reward) = (column(&chosen, &prompt)?, column(&chosen, &reward)?);
        let mut prompts: HashMap<i64, Seen> = HashMap::new();
        for position in chosen.positions.iter() {
            let at = *position as usize;
            let Some(prompt) = prompt.int(at) else { continue };
            let seen = prompts.entry(prompt).or_insert(Seen { best: *position, ..Seen::default() });
            let value = reward.number(at);
            if value.is_some_and(|value| seen.reward.most.is_none_or(|most| value > most)) {
                seen.best = *position;
            }
            seen.n += 1;
            seen.reward.add(value);
        }
        Ok((chosen, prompts))
    }

    /// Reads one body. One that has gone has no snippet, and the figures are right without it.
    fn snippet(&self, row: RowNo) -> Result<String, QueryError> {
        let Ok(body) = self.catalog().body(row) else { return Ok(String::new()) };
        let pieces = body.pieces().unwrap_or_default();
        let is_said =
            |channel| matches!(channel, Channel::Assistant | Channel::Reasoning | Channel::ToolCall);
        let asked = pieces.iter().take_while(|piece| !is_said(piece.channel));
        let last = asked.filter(|piece| piece.channel == Channel::User).last().or(pieces.first());
        let text = last.map(|piece| piece.text.trim()).unwrap_or_default();
        Ok(text.chars().take(SNIPPET_CHARS).collect())
    }
}

impl Both {
    fn delta(&self) -> Option<f64> {
        Some(self.there.reward.mean()? - self.here.reward.mean()?)
    }

    fn key(&self, by: &str) -> Option<u64> {
        match by {
            "n" => Some(self.here.n + self.there.n),
            "n_here" => Some(self.here.n),
            "n_there" => Some(self.there.n),
            "reward_here" => self.here.reward.mean().and_then(order::real_key),
            "reward_there" => self.there.reward.mean().and_then(order::real_key),
            "prompt_hash" => Some(order::int_key(self.prompt)),
            _ => self.delta().and_then(order::real_key),
        }
    }
}

fn sort(both: &mut Vec<Both>, sort: &[Sort]) {
    let mut places: Vec<u32> = (0..u32::try_from(both.len()).unwrap_or(u32::MAX)).collect();
    for by in sort.iter().rev() {
        let key = |at: &u32| both.get(*at as usize).and_then(|pair| pair.key(&by.field));
        let keys: Vec<Option<u64>> = places.iter().map(key).collect();
        order::by_keys(&keys, by.descending, &mut places);
    }
    *both = places.into_iter().filter_map(|at| both.get(at as usize).copied()).collect();
}

fn figures(both: &[Both]) -> Compared {
    let [mut here, mut there, mut deltas] = [Sum::default(); 3];
    let mut compared = Compared { shared: both.len() as u64, ..Compared::default() };
    let rated = || both.iter().filter_map(|pair| Some((pair, pair.delta()?)));
    for (pair, delta) in rated() {
        here.add(pair.here.reward.mean());
        there.add(pair.there.reward.mean());
        deltas.add(Some(delta));
        match delta {
            delta if delta > 0.0 => compared.better += 1,
            delta if delta < 0.0 => compared.worse += 1,
            _ => compared.same += 1,
        }
    }
    (compared.mean_here, compared.mean_there) = (here.mean(), there.mean());
    compared.delta_mean = deltas.mean();
    if let Some(mean) = deltas.mean().filter(|_| deltas.n > 1) {
        let squares: f64 = rated().map(|(_, delta)| (delta - mean).powi(2)).sum();
        let (n, variance) = (deltas.n as f64, squares / (deltas.n - 1) as f64);
        let half = DEVIATIONS * (variance / n).sqrt();
        (compared.delta_low, compared.delta_high) = (Some(mean - half), Some(mean + half));
    }
    compared
}
