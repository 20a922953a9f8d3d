//! What arrived since the last successful read, in a few numbers.
//!
//! The trainer sees groups only after validity and filter have shaped them, so it learns from here how
//! the policy really does. Each write is folded in by Welford's update, which needs no second look at the
//! data and does not lose digits as `sum(r^2) - n * mean^2` does:
//!
//! `delta = r - mean; mean += delta / n; m2 += delta * (r - mean); std = sqrt(m2 / (n - 1))`
//!
//! A read takes the [`Tally`]; a read that is undone puts it back with [`Tally::merge`].

use hashbrown::HashSet;
use serde::{Deserialize, Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meta {
    /// Counts, the spread of the raw rewards, and the groups that finished.
    Rewards,
    /// Nothing.
    None,
    /// What a function of the task's generator makes of the raw rollouts; these counts if it fails.
    Hook,
}

impl Meta {
    pub fn info(self, tally: &Tally) -> Option<MetaInfo> {
        match self {
            Self::Rewards | Self::Hook => Some(tally.info()),
            Self::None => None,
        }
    }
}

/// The `meta_info` of a read; all zeros when nothing arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetaInfo {
    pub total_samples: u64,
    pub num_groups: u64,
    pub avg_group_size: f64,
    pub avg_reward: f64,
    pub reward_min: f64,
    pub reward_max: f64,
    /// Sample standard deviation (`n - 1`); 0 below two samples.
    pub reward_std: f64,
    /// Instances whose groups finished, in the order they first did.
    pub finished_groups: Vec<String>,
}

/// Running statistics of the raw rollouts since the last successful read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    samples: u64,
    groups: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    m2: f64,
    // Zero, not infinite, while there are no samples: JSON has no infinity.
    min: f64,
    max: f64,
    finished: Finished,
}

impl Tally {
    /// Counts a rollout, and a group if the rollout is the first of one.
    pub fn add(&mut self, reward: f64, opens_group: bool) {
        self.widen(reward, reward);
        self.samples += 1;
        self.groups += u64::from(opens_group);
        let delta = reward - self.mean;
        self.mean += delta / self.samples as f64;
        self.m2 += delta * (reward - self.mean);
    }

    /// Notes that a group of this instance finished; a second time changes nothing.
    pub fn finish(&mut self, instance: &str) {
        self.finished.push(instance);
    }

    /// Puts back the tally of a read that was undone, as if everything since had followed it.
    pub fn merge(&mut self, earlier: Self) {
        let later = std::mem::replace(self, earlier);
        self.groups += later.groups;
        for instance in &later.finished.order {
            self.finished.push(instance);
        }
        if later.samples == 0 {
            return;
        }
        self.widen(later.min, later.max);
        // Welford's update with many samples at once (Chan et al.).
        let before = self.samples as f64;
        self.samples += later.samples;
        let share = later.samples as f64 / self.samples as f64;
        let delta = later.mean - self.mean;
        self.mean += delta * share;
        self.m2 += later.m2 + delta * delta * before * share;
    }

    pub fn info(&self) -> MetaInfo {
        MetaInfo {
            total_samples: self.samples,
            num_groups: self.groups,
            // Samples without a group are late ones of groups counted in an earlier read.
            avg_group_size: if self.groups == 0 { 0.0 } else { self.samples as f64 / self.groups as f64 },
            avg_reward: self.mean,
            reward_min: self.min,
            reward_max: self.max,
            reward_std: if self.samples < 2 { 0.0 } else { (self.m2 / (self.samples - 1) as f64).sqrt() },
            finished_groups: self.finished.order.clone(),
        }
    }

    /// Takes in the extremes of rewards that are about to be counted.
    fn widen(&mut self, min: f64, max: f64) {
        (self.min, self.max) =
            if self.samples == 0 { (min, max) } else { (self.min.min(min), self.max.max(max)) };
    }
}

/// A list of names, each once, in the order of first mention.
///
/// It is stored as the bare list; the set that makes `push` cheap is made again on loading.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Vec<String>")]
struct Finished {
    order: Vec<String>,
    seen: HashSet<String>,
}

impl Finished {
    fn push(&mut self, name: &str) {
        if !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
            self.order.push(name.to_owned());
        }
    }
}

impl From<Vec<String>> for Finished {
    fn from(names: Vec<String>) -> Self {
        let mut finished = Self::default();
        for name in &names {
            finished.push(name);
        }
        finished
    }
}

impl Serialize for Finished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.order.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tally<S: AsRef<str>>(rewards: &[(f64, bool)], finished: &[S]) -> Tally {
        let mut tally = Tally::default();
        for &(reward, opens_group) in rewards {
            tally.add(reward, opens_group);
        }
        for instance in finished {
            tally.finish(instance.as_ref());
        }
        tally
    }

    /// The same numbers by the formulas of the textbook, in two passes over the data.
    fn two_passes(rewards: &[(f64, bool)], finished_groups: Vec<String>) -> MetaInfo {
        let n = rewards.len() as f64;
        let groups = rewards.iter().filter(|(_, opens_group)| *opens_group).count();
        let of = |start: f64, fold: fn(f64, f64) -> f64| rewards.iter().map(|(r, _)| *r).fold(start, fold);
        let mean = of(0.0, |sum, r| sum + r) / n.max(1.0);
        let squares: f64 = rewards.iter().map(|(r, _)| (r - mean).powi(2)).sum();
        MetaInfo {
            total_samples: rewards.len() as u64,
            num_groups: groups as u64,
            avg_group_size: if groups == 0 { 0.0 } else { n / groups as f64 },
            avg_reward: mean,
            reward_min: if rewards.is_empty() { 0.0 } else { of(f64::INFINITY, f64::min) },
            reward_max: if rewards.is_empty() { 0.0 } else { of(f64::NEG_INFINITY, f64::max) },
            reward_std: if n < 2.0 { 0.0 } else { (squares / (n - 1.0)).sqrt() },
            finished_groups,
        }
    }

    fn assert_close(got: &MetaInfo, want: &MetaInfo) {
        assert!((got.avg_reward - want.avg_reward).abs() < 1e-6, "mean of {got:?}, not {want:?}");
        assert!((got.reward_std - want.reward_std).abs() < 1e-6, "std of {got:?}, not {want:?}");
        let rounded = MetaInfo { avg_reward: want.avg_reward, reward_std: want.reward_std, ..got.clone() };
        assert_eq!(&rounded, want);
    }

    #[test]
    fn info_counts_what_arrived() {
        for (rewards, finished, expected) in [
            (vec![], vec![], (0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)),
            (vec![(0.5, true)], vec!["a"], (1, 1, 1.0, 0.5, 0.5, 0.5, 0.0)),
            (vec![(-1.0, true)], vec![], (1, 1, 1.0, -1.0, -1.0, -1.0, 0.0)),
            (vec![(1.0, true), (3.0, false)], vec!["b", "a"], (2, 1, 2.0, 2.0, 1.0, 3.0, 2f64.sqrt())),
            (vec![(1.0, true), (1.0, false), (1.0, true)], vec![], (3, 2, 1.5, 1.0, 1.0, 1.0, 0.0)),
            // Late rollouts of a group that an earlier read has counted.
            (vec![(0.0, false), (2.0, false)], vec![], (2, 0, 0.0, 1.0, 0.0, 2.0, 2f64.sqrt())),
        ] {
            let (total_samples, num_groups, avg_group_size, avg_reward, reward_min, reward_max, reward_std) =
                expected;
            let finished_groups = finished.iter().map(|name| (*name).to_owned()).collect();
            let want = MetaInfo {
                total_samples,
                num_groups,
                avg_group_size,
                avg_reward,
                reward_min,
                reward_max,
                reward_std,
                finished_groups,
            };
            assert_close(&tally(&rewards, &finished).info(), &want);
        }
    }

    #[test]
    fn none_says_nothing() {
        let tally = tally(&[(1.0, true)], &["a"]);
        assert_eq!(Meta::None.info(&tally), None);
        assert_eq!(Meta::Rewards.info(&tally), Some(tally.info()));
    }

    #[test]
    fn an_instance_is_listed_once_where_it_first_finished() {
        assert_eq!(tally(&[], &["b", "a", "b", "c", "a"]).info().finished_groups, ["b", "a", "c"]);
    }

    #[test]
    fn an_undone_read_comes_back_in_front() {
        let mut later = tally(&[(3.0, true)], &["c", "a"]);
        later.merge(tally(&[(1.0, true), (2.0, false)], &["a", "b"]));
        assert_eq!(later.info().finished_groups, ["a", "b", "c"]);
        assert_close(
            &later.info(),
            &tally(&[(1.0, true), (2.0, false), (3.0, true)], &["a", "b", "c"]).info(),
        );
    }

    #[test]
    fn merging_with_nothing_changes_nothing() {
        let full = tally(&[(0.1, true), (0.7, false)], &["a"]);
        let mut undone = Tally::default();
        undone.merge(full.clone());
        assert_eq!(undone, full);
        undone.merge(Tally::default());
        assert_eq!(undone, full);
    }

    #[test]
    fn a_loaded_tally_still_lists_an_instance_once() {
        let stored = serde_json::to_value(tally(&[(0.5, true)], &["b", "a"])).unwrap();
        assert_eq!(stored["finished"], json!(["b", "a"]));
        let mut loaded: Tally = serde_json::from_value(stored).unwrap();
        loaded.finish("a");
        loaded.finish("c");
        assert_eq!(loaded, tally(&[(0.5, true)], &["b", "a", "c"]));
    }

    #[test]
    fn an_empty_tally_survives_json() {
        let text = serde_json::to_string(&Tally::default()).unwrap();
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), Tally::default());
    }

    #[test]
    fn a_hundred_thousand_finished_instances_are_cheap() {
        // Twice, so that half the calls look for a name that is there. A scan of the list would compare
        // ten thousand million names: no assertion fails then, but nobody waits for the test to end.
        let mut tally = Tally::default();
        for i in (0..100_000).chain(0..100_000) {
            tally.finish(&format!("task_{i}"));
        }
        assert_eq!(tally.info().finished_groups.len(), 100_000);
    }

    fn arrivals() -> impl Strategy<Value = Vec<(f64, bool)>> {
        prop::collection::vec((-1e3..1e3f64, any::<bool>()), 0..64)
    }

    fn instances() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[a-e]", 0..8)
    }

    proptest! {
        #[test]
        fn one_pass_agrees_with_two(rewards in arrivals()) {
            assert_close(&tally::<&str>(&rewards, &[]).info(), &two_passes(&rewards, vec![]));
        }

        #[test]
        fn merging_equals_adding_all(
            (first, second) in (arrivals(), arrivals()),
            (done_first, done_second) in (instances(), instances()),
        ) {
            let mut merged = tally(&second, &done_second);
            merged.merge(tally(&first, &done_first));
            let all = tally(&[first, second].concat(), &[done_first, done_second].concat());
            assert_close(&merged.info(), &all.info());
        }

        #[test]
        fn a_stored_tally_loads_equal(rewards in arrivals(), done in instances()) {
            let tally = tally(&rewards, &done);
            let bytes = rmp_serde::to_vec(&tally).unwrap();
            prop_assert_eq!(rmp_serde::from_slice::<Tally>(&bytes).unwrap(), tally);
        }
    }
}
