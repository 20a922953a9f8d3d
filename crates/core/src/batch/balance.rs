//! Rows shared out over ranks so that none waits for another.
//!
//! Karmarkar and Karp's largest differencing method: begin with every cost alone in its own partition, and
//! keep joining the two partitions with the largest spread, heaviest set with lightest. A join never widens
//! the spread beyond the wider of the two, so the ranks end within the largest single cost of each other.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::BatchError;

/// Whether ranks must get the same number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Any,
    /// As most trainers need it; the number of rows must be a multiple of the ranks.
    Equal,
}

/// The rows of each rank. Equal input gives equal output, so every rank computes it by itself.
pub fn share(costs: &[u64], ranks: usize, counts: Counts) -> Result<Vec<Vec<usize>>, BatchError> {
    if ranks == 0 {
        return Err(BatchError::Zero { what: "the number of ranks" });
    }
    if counts == Counts::Equal && !costs.len().is_multiple_of(ranks) {
        return Err(BatchError::Uneven { count: costs.len(), parts: ranks });
    }
    let mut heap = first_partitions(costs, ranks, counts);
    while let Some(widest) = heap.pop() {
        let Some(next) = heap.pop() else {
            return Ok(widest.in_order());
        };
        heap.push(widest.join(next));
    }
    Ok(vec![Vec::new(); ranks])
}

/// One partition for each cost; for equal counts, one for each `ranks` neighbours in order of cost.
fn first_partitions(costs: &[u64], ranks: usize, counts: Counts) -> BinaryHeap<Partition> {
    let mut largest_first: Vec<(u64, usize)> = costs.iter().copied().zip(0..).collect();
    largest_first.sort_by_key(|(cost, index)| (Reverse(*cost), *index));
    let together = match counts {
        Counts::Any => 1,
        Counts::Equal => ranks,
    };
    largest_first
        .chunks(together)
        .enumerate()
        .map(|(nth, chunk)| {
            let mut sets: Vec<Set> =
                chunk.iter().map(|(sum, index)| Set { sum: *sum, rows: vec![*index] }).collect();
            sets.resize_with(ranks, Set::default);
            Partition { nth, sets }
        })
        .collect()
}

#[derive(Clone, Debug, Default)]
struct Set {
    sum: u64,
    rows: Vec<usize>,
}

/// `ranks` sets, the heaviest first.
#[derive(Clone, Debug)]
struct Partition {
    /// Breaks ties between equal spreads, always the same way.
    nth: usize,
    sets: Vec<Set>,
}

impl Partition {
    fn spread(&self) -> u64 {
        let sum = |set: Option<&Set>| set.map_or(0, |set| set.sum);
        sum(self.sets.first()) - sum(self.sets.last())
    }

    fn join(mut self, other: Self) -> Self {
        for (set, light) in self.sets.iter_mut().zip(other.sets.into_iter().rev()) {
            set.sum += light.sum;
            set.rows.extend(light.rows);
        }
        self.sets.sort_by_key(|set| Reverse(set.sum));
        self
    }

    /// The ranks in the order of their first rows.
    fn in_order(self) -> Vec<Vec<usize>> {
        let mut ranks: Vec<Vec<usize>> = self.sets.into_iter().map(|set| set.rows).collect();
        for rows in &mut ranks {
            rows.sort_unstable();
        }
        ranks.sort_by_key(|rows| rows.first().copied().unwrap_or(usize::MAX));
        ranks
    }
}

impl Ord for Partition {
    fn cmp(&self, other: &Self) -> Ordering {
        self.spread().cmp(&other.spread()).then(other.nth.cmp(&self.nth))
    }
}

impl PartialOrd for Partition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Partition {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Partition {}
