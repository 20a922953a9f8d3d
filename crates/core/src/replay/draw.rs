//! Ranks drawn without replacement, with weights, in time that does not depend on how many there are.
//!
//! Drawing one after the other and never the same twice is what `numpy.random.choice(replace=False, p=…)` does,
//! and what is done here. A proposal costs one power; one that was drawn before is drawn again, which leaves
//! exactly the weights of those that are left. Where that would take many tries (nearly all are wanted, or a
//! few have nearly all the weight), the rest come from the smallest of `exponential / weight`, which is the
//! same distribution (Efraimidis and Spirakis, 2006) at the price of looking at every rank once.

use hashbrown::HashSet;

use super::chance::Chance;
use super::shelf::Shelf;

/// How likely each rank is, up to a factor.
pub(super) trait Weights {
    /// A rank drawn by weight, or `None` for a try that must be made again.
    fn propose(&self, chance: &mut Chance) -> Option<usize>;
    /// The logarithm of a rank's weight; minus infinity for one that is never drawn.
    fn log_weight(&self, rank: usize) -> f64;
    /// How many ranks there are.
    fn len(&self) -> usize;
}

/// `count` different ranks, in the order they were drawn. There must be as many that can be drawn.
pub(super) fn without_replacement(weights: &impl Weights, count: usize, chance: &mut Chance) -> Vec<usize> {
    let mut picks = Vec::with_capacity(count);
    let mut drawn = HashSet::with_capacity(count);
    // When more than half are wanted, most proposals at the end would have been drawn before.
    let mut tries = if count * 2 > weights.len() { 0 } else { 4 * count + 64 };
    while picks.len() < count && tries > 0 {
        tries -= 1;
        if let Some(rank) = weights.propose(chance)
            && drawn.insert(rank)
        {
            picks.push(rank);
        }
    }
    let missing = count - picks.len();
    if missing > 0 {
        picks.extend(smallest(weights, missing, &drawn, chance));
    }
    picks
}

fn smallest(weights: &impl Weights, count: usize, drawn: &HashSet<usize>, chance: &mut Chance) -> Vec<usize> {
    let mut keys: Vec<(f64, usize)> = (0..weights.len())
        .filter(|rank| !drawn.contains(rank))
        .map(|rank| (libm::log(chance.exponential()) - weights.log_weight(rank), rank))
        .collect();
    let by_key = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if count < keys.len() {
        keys.select_nth_unstable_by(count, by_key);
        keys.truncate(count);
    }
    keys.sort_unstable_by(by_key);
    keys.into_iter().map(|(_, rank)| rank).collect()
}

/// Every rank as likely as the others.
pub(super) struct Uniform {
    pub(super) len: usize,
}

impl Weights for Uniform {
    fn propose(&self, chance: &mut Chance) -> Option<usize> {
        Some(chance.below(self.len))
    }

    fn log_weight(&self, _: usize) -> f64 {
        0.0
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Rank `i` weighs `(i + 1)^alpha`, alpha 0 or above: later ranks come more often.
pub(super) struct Recency {
    len: usize,
    alpha: f64,
    /// The share of the proposals' distribution that lies before rank 0.
    floor: f64,
}

impl Recency {
    pub(super) fn new(len: usize, alpha: f64) -> Self {
        Self { len, alpha, floor: libm::pow(1.0 / (len as f64 + 1.0), alpha + 1.0) }
    }
}

impl Weights for Recency {
    /// A point `x` from 1 to `len + 1` with density `x^alpha` falls between `j` and `j + 1` with a probability
    /// a little above `j^alpha`; the surplus is rejected.
    fn propose(&self, chance: &mut Chance) -> Option<usize> {
        let power = self.alpha + 1.0;
        let share = self.floor + chance.unit() * (1.0 - self.floor);
        let x = (self.len as f64 + 1.0) * root(share, power);
        let j = (x as usize).clamp(1, self.len);
        let surplus = power / j as f64;
        let luck = chance.unit();
        // The exact share is surplus / expm1(power * log1p(1 / j)), which is at least this.
        let surely = luck < 1.0 - surplus / 2.0;
        let accepted = surely || luck * libm::expm1(power * libm::log1p(1.0 / j as f64)) < surplus;
        accepted.then_some(j - 1)
    }

    fn log_weight(&self, rank: usize) -> f64 {
        self.alpha * libm::log(rank as f64 + 1.0)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The `power`-th root. Square roots are as exact on every machine and take a tenth of the time, and 1, 2 and 4
/// are what the usual alphas of 0, 1 and 3 need.
fn root(share: f64, power: f64) -> f64 {
    if power == 1.0 {
        share
    } else if power == 2.0 {
        share.sqrt()
    } else if power == 4.0 {
        share.sqrt().sqrt()
    } else {
        libm::pow(share, 1.0 / power)
    }
}

/// Weights of their own at places in a row, of which some are free: a tree of sums.
#[derive(Clone, Debug, Default)]
pub(super) struct SumTree {
    /// A full binary tree, the root first; its leaves are the places.
    sums: Vec<f64>,
    leaves: usize,
}

impl SumTree {
    pub(super) fn weight(&self, place: usize) -> f64 {
        self.sums.get(self.leaves.saturating_sub(1) + place).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, place: usize, weight: f64) {
        if place >= self.leaves {
            self.grow(place + 1);
        }
        let mut node = self.leaves - 1 + place;
        if let Some(leaf) = self.sums.get_mut(node) {
            *leaf = weight;
        }
        while node > 0 {
            node = (node - 1) / 2;
            // Added up anew each time: differences would leave their rounding behind.
            let sum = self.sum(2 * node + 1) + self.sum(2 * node + 2);
            if let Some(inner) = self.sums.get_mut(node) {
                *inner = sum;
            }
        }
    }

    fn sum(&self, node: usize) -> f64 {
        self.sums.get(node).copied().unwrap_or_default()
    }

    fn grow(&mut self, places: usize) {
        let old: Vec<f64> = (0..self.leaves).map(|place| self.weight(place)).collect();
        self.leaves = places.next_power_of_two().max(64);
        self.sums = vec![0.0; 2 * self.leaves - 1];
        for (leaf, weight) in self.sums.iter_mut().skip(self.leaves - 1).zip(old) {
            *leaf = weight;
        }
        for node in (0..self.leaves - 1).rev() {
            let sum = self.sum(2 * node + 1) + self.sum(2 * node + 2);
            if let Some(inner) = self.sums.get_mut(node) {
                *inner = sum;
            }
        }
    }
}

/// The weights of the taken places of a shelf, by rank: which places lie between them makes no difference.
pub(super) struct Priorities<'a> {
    pub(super) tree: &'a SumTree,
    pub(super) shelf: &'a Shelf,
}

impl Weights for Priorities<'_> {
    fn propose(&self, chance: &mut Chance) -> Option<usize> {
        let mut rest = chance.unit() * self.tree.sum(0);
        let mut node = 0;
        let inner = self.tree.leaves.checked_sub(1)?;
        while node < inner {
            let left = self.tree.sum(2 * node + 1);
            if rest < left {
                node = 2 * node + 1;
            } else {
                rest -= left;
                node = 2 * node + 2;
            }
        }
        let place = node - inner;
        // Rounding can lead to a leaf that weighs nothing.
        (self.tree.weight(place) > 0.0).then(|| self.shelf.rank(place))
    }

    fn log_weight(&self, rank: usize) -> f64 {
        let weight = self.shelf.select(rank).map(|place| self.tree.weight(place));
        libm::log(weight.unwrap_or_default())
    }

    fn len(&self) -> usize {
        self.shelf.taken()
    }
}
