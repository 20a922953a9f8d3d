//! The distribution is the documented one, and a plain list comes to the same.

use super::*;
use crate::pipeline::DropReason;
use crate::rollout::{Draft, Metadata, Rollout};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

const NOW: f64 = 1_700_000_000.0;

fn facts(priority: f32) -> Facts {
    Facts { weight_step: 0, newest_version: 0, timestamp: NOW, priority }
}

fn pool(select: Select) -> Pool<usize> {
    Pool::new(Rules { select, ..Rules::default() })
}

/// How far counts are from what was expected, and the bound that fair draws stay below.
fn chi_square(observed: &[u64], expected: &[f64]) -> (f64, f64) {
    let cells = observed.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    let sum = cells.map(|(seen, want)| (*seen as f64 - want).powi(2) / want).sum();
    let df = expected.iter().filter(|expected| **expected > 0.0).count() as f64 - 1.0;
    // Five standard deviations of the normal that Wilson and Hilferty's cube root is near to.
    let cube = 1.0 - 2.0 / (9.0 * df) + 5.0 * (2.0 / (9.0 * df)).sqrt();
    (sum, df * cube.powi(3))
}

fn assert_fair(what: &str, observed: &[u64], expected: &[f64]) {
    assert!(observed.iter().zip(expected).all(|(seen, want)| *want > 0.0 || *seen == 0), "{what}");
    let (found, bound) = chi_square(observed, expected);
    assert!(found < bound, "{what}: chi-square {found:.1} is above {bound:.1}\n{observed:?}\n{expected:?}");
}

#[test]
fn recency_is_the_documented_distribution_with_and_without_holes() {
    const DRAWS: u64 = 40_000;
    for alpha in [0.0, 0.3, 1.0, 3.0, 10.0, 200.0] {
        for (size, gone) in [(1, vec![]), (7, vec![]), (60, vec![0, 1, 5, 30, 59]), (40, (0..20).collect())] {
            let mut pool = pool(Select::Recency { alpha });
            let ids: Vec<EntryId> = (0..size).map(|nth| pool.insert("e", facts(1.0), nth)).collect();
            for nth in &gone {
                pool.remove(ids[*nth]);
            }
            let left: Vec<usize> = (0..size).filter(|nth| !gone.contains(nth)).collect();
            let mut observed = vec![0; left.len()];
            for draw in 0..DRAWS {
                let picked = pool.pick(1, &mut Chance::of(11, draw)).unwrap();
                let nth = pool.get(picked[0]).unwrap().item;
                observed[left.iter().position(|known| *known == nth).unwrap()] += 1;
            }
            let weights: Vec<f64> = (0..left.len()).map(|rank| alpha * ((rank + 1) as f64).ln()).collect();
            let top = weights.last().unwrap();
            let weights: Vec<f64> = weights.iter().map(|weight| (weight - top).exp()).collect();
            let all: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|weight| weight / all * DRAWS as f64).collect();
            // Cells in which next to nothing is expected are put together.
            let (mut small, mut seen, mut want) = ((0, 0.0), vec![], vec![]);
            for (o, e) in observed.iter().zip(&expected) {
                if *e < 5.0 {
                    small = (small.0 + o, small.1 + e);
                } else {
                    seen.push(*o);
                    want.push(*e);
                }
            }
            assert!(
                (small.0 as f64) < small.1 + 5.0 * (small.1 + 1.0).sqrt() + 5.0,
                "alpha {alpha}: {small:?}"
            );
            if want.len() > 1 {
                let total: f64 = seen.iter().sum::<u64>() as f64;
                let share = total / want.iter().sum::<f64>();
                let want: Vec<f64> = want.iter().map(|e| e * share).collect();
                assert_fair(&format!("alpha {alpha}, {size} with {} holes", gone.len()), &seen, &want);
            }
        }
    }
}

/// The probability of every ordered pick of `count` of these weights, one after the other without replacement.
fn sequences(weights: &[f64], count: usize) -> BTreeMap<Vec<usize>, f64> {
    let mut all = BTreeMap::from([(Vec::new(), 1.0)]);
    for _ in 0..count {
        let mut longer = BTreeMap::new();
        for (picked, probability) in all {
            let left: f64 = (0..weights.len()).filter(|i| !picked.contains(i)).map(|i| weights[i]).sum();
            for next in (0..weights.len()).filter(|i| !picked.contains(i)) {
                let mut sequence = picked.clone();
                sequence.push(next);
                longer.insert(sequence, probability * weights[next] / left);
            }
        }
        all = longer;
    }
    all
}

#[test]
fn drawing_without_replacement_is_drawing_one_after_the_other() {
    const DRAWS: u64 = 60_000;
    let by_rank = |alpha: f64, n: usize| (0..n).map(|i| ((i + 1) as f64).powf(alpha)).collect::<Vec<f64>>();
    let priorities = [0.5_f32, 2.0, 1.0, 4.0, 0.25, 1.0];
    let squared = priorities.map(|priority| f64::from(priority).powi(2)).to_vec();
    // Three of six come by proposals, four of five by the smallest keys.
    for (what, select, weights, count) in [
        ("uniform 3 of 6", Select::Uniform, by_rank(0.0, 6), 3),
        ("uniform 4 of 5", Select::Uniform, by_rank(0.0, 5), 4),
        ("recency 3 of 6", Select::Recency { alpha: 2.0 }, by_rank(2.0, 6), 3),
        ("recency 4 of 5", Select::Recency { alpha: 2.0 }, by_rank(2.0, 5), 4),
        ("recency 2 of 6", Select::Recency { alpha: 0.5 }, by_rank(0.5, 6), 2),
        ("priorities 2 of 6", Select::Prioritised { exponent: 2.0 }, squared.clone(), 2),
        ("all of them", Select::Recency { alpha: 1.0 }, by_rank(1.0, 4), 4),
    ] {
        let mut pool = pool(select);
        for (nth, priority) in priorities.into_iter().enumerate().take(weights.len()) {
            pool.insert("e", facts(priority), nth);
        }
        let expected = sequences(&weights, count);
        let mut observed: BTreeMap<Vec<usize>, u64> = expected.keys().map(|key| (key.clone(), 0)).collect();
        for draw in 0..DRAWS {
            let picked = pool.pick(count, &mut Chance::of(3, draw)).unwrap();
            let sequence: Vec<usize> = picked.iter().map(|id| pool.get(*id).unwrap().item).collect();
            *observed.get_mut(&sequence).expect("no rollout twice") += 1;
        }
        let observed: Vec<u64> = observed.into_values().collect();
        let expected: Vec<f64> = expected.into_values().map(|p| p * DRAWS as f64).collect();
        assert_fair(what, &observed, &expected);
    }
}

#[test]
fn environments_are_drawn_in_proportion_without_replacement() {
    const DRAWS: u64 = 30_000;
    let sizes = [("a", 12), ("b", 5), ("c", 3)];
    let mut pool = pool(Select::Uniform);
    for (env, size) in sizes {
        for nth in 0..size {
            pool.insert(env, facts(1.0), nth);
        }
    }
    let (all, count) = (20, 6);
    let choose = |n: usize, k: usize| (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product::<f64>();
    for (env, size) in sizes {
        let mut observed = vec![0; count + 1];
        for draw in 0..DRAWS {
            let picked: BTreeSet<EntryId> =
                pool.pick(count, &mut Chance::of(5, draw)).unwrap().into_iter().collect();
            let of_env = pool.entries().filter(|(name, id, _)| *name == env && picked.contains(id)).count();
            observed[of_env] += 1;
        }
        // The hypergeometric distribution.
        let expected: Vec<f64> = (0..=count)
            .map(|k| {
                if k > size {
                    0.0
                } else {
                    choose(size, k) * choose(all - size, count - k) / choose(all, count)
                }
            })
            .map(|p| p * DRAWS as f64)
            .collect();
        assert_fair(env, &observed, &expected);
    }
}

#[test]
fn equal_balance_takes_as_many_of_each_as_there_are() {
    let rules = Rules { balance: Balance::Equal, select: Select::Uniform, ..Rules::default() };
    let mut pool = Pool::new(rules);
    for (env, size) in [("rare", 2), ("common", 100), ("usual", 50)] {
        for nth in 0..size {
            pool.insert(env, facts(1.0), nth);
        }
    }
    let picked = pool.pick(20, &mut Chance::of(0, 0)).unwrap();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (env, id, _) in pool.entries() {
        *counts.entry(env).or_default() += usize::from(picked.contains(&id));
    }
    assert_eq!(counts, BTreeMap::from([("rare", 2), ("common", 9), ("usual", 9)]));
}

#[test]
fn any_part_of_a_batch_is_a_fair_mix_of_environments() {
    let mut pool = pool(Select::Recency { alpha: 1.0 });
    for nth in 0..4000 {
        pool.insert(["a", "b"][nth % 2], facts(1.0), nth);
    }
    let picked = pool.pick(1000, &mut Chance::of(9, 9)).unwrap();
    let of_a = picked[..500].iter().filter(|id| pool.get(**id).unwrap().item.is_multiple_of(2)).count();
    assert!((180..=320).contains(&of_a), "{of_a} of the first 500 are from one of two equal environments");
}

#[test]
fn a_rollout_that_comes_back_is_where_it_was() {
    let mut pool =
        Pool::new(Rules { select: Select::OldestFirst, max_samples: NonZeroU32::new(1), ..Rules::default() });
    let ids: Vec<EntryId> = (0..4).map(|nth| pool.insert("e", facts(1.0), nth)).collect();
    pool.take(ids[1]);
    let order = |pool: &Pool<usize>| {
        let picked = pool.pick(pool.size(), &mut Chance::of(0, 0)).unwrap();
        picked.into_iter().map(|id| pool.get(id).unwrap().item).collect::<Vec<_>>()
    };
    assert_eq!(order(&pool), [0, 2, 3]);
    pool.give_back(ids[1]);
    assert_eq!(order(&pool), [0, 1, 2, 3]);
    assert_eq!(pool.get(ids[1]).unwrap().used, 0);
}

#[test]
fn holes_are_closed_and_the_order_stays() {
    let mut pool = pool(Select::OldestFirst);
    let mut kept = Vec::new();
    for nth in 0..10_000 {
        let id = pool.insert("e", facts(1.0), nth);
        if nth % 10 == 0 {
            kept.push(nth);
        } else {
            pool.remove(id);
        }
    }
    let picked = pool.pick(kept.len(), &mut Chance::of(0, 0)).unwrap();
    assert_eq!(picked.into_iter().map(|id| pool.get(id).unwrap().item).collect::<Vec<_>>(), kept);
    assert_eq!(pool.entries().map(|(_, _, entry)| entry.item).collect::<Vec<_>>(), kept);
}

fn rollout(env: &str, id: usize, weight_step: i64, timestamp: f64, reward: f64) -> Arc<Rollout> {
    let draft = Draft {
        env_name: env.to_owned(),
        env_example_id: id.to_string(),
        tokens: vec![1; 1 + id % 7],
        prompt_len: 1,
        episode_reward: reward,
        metadata: Metadata { worker_id: "w".to_owned(), timestamp, weight_step, ..Metadata::default() },
        ..Draft::default()
    };
    Arc::new(Rollout::try_from(draft).unwrap())
}

fn config(batch: usize) -> BufferConfig {
    BufferConfig {
        rules: Rules::default(),
        share: BatchShare {
            local_batch_size: NonZeroUsize::new(batch).unwrap(),
            total_processes: NonZeroUsize::MIN,
            process_id: 0,
        },
        advantage: Advantage::Rloo,
        zero_variance: ZeroVariance::Keep,
        limiter: Limiter::none(),
        seed: 1,
    }
}

fn single(rollout: Arc<Rollout>) -> Vec<NewGroup> {
    vec![NewGroup { rollouts: vec![rollout], advantages: None }]
}

#[test]
fn a_wrong_call_is_named_and_changes_nothing() {
    let mut buffer = Buffer::new(config(2)).unwrap();
    let good = || rollout("e", 1, 0, NOW, 0.5);
    let bare = Arc::new(good().with_metadata(Metadata::default()).unwrap());
    let group = |rollouts: Vec<Arc<Rollout>>, advantages| NewGroup { rollouts, advantages };
    for (groups, part) in [
        (vec![group(vec![good()], None), group(vec![], None)], "group 1 has no rollouts"),
        (vec![group(vec![good(), bare], None)], "rollout 1 (\"1\") in group 0 has no metadata"),
        (vec![group(vec![good()], Some(vec![1.0, 2.0]))], "1 rollouts, but 2 advantages"),
        (vec![group(vec![good()], Some(vec![f32::NAN]))], "NaN"),
    ] {
        let error = buffer.add(groups, NOW).unwrap_err().to_string();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
        assert_eq!(buffer.stats(), Buffer::new(config(2)).unwrap().stats());
    }
    buffer.set_step(5, NOW).unwrap();
    assert_eq!(buffer.set_step(4, NOW), Err(ReplayError::StepBack { step: 4, last: 5 }));
    for (changed, part) in [
        (Rules { select: Select::Recency { alpha: f64::NAN }, ..Rules::default() }, "alpha = NaN"),
        (Rules { select: Select::Recency { alpha: -1.0 }, ..Rules::default() }, "alpha = -1"),
        (Rules { age_secs_max: Some(f64::NAN), ..Rules::default() }, "max_rollout_timestamp_delay = NaN"),
    ] {
        let error = Buffer::new(BufferConfig { rules: changed, ..config(1) }).unwrap_err().to_string();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

#[test]
fn a_batch_that_can_never_be_drawn_is_said_and_not_waited_for() {
    let capacity = NonZeroUsize::new(3).unwrap();
    let mut buffer =
        Buffer::new(BufferConfig { rules: Rules { capacity, ..Rules::default() }, ..config(4) }).unwrap();
    assert!(matches!(buffer.sample(NOW), Ok(None)));
    for id in 0..9 {
        buffer.add(single(rollout("e", id, 0, NOW, 0.0)), NOW).unwrap();
    }
    assert_eq!(buffer.stats().dropped, BTreeMap::from([(DropReason::Capacity, 6)]));
    let error = buffer.sample(NOW).unwrap_err();
    assert_eq!(error, ReplayError::BatchTooLarge { batch: 4, envs: 1, capacity: 3, size: 3 });
}

#[test]
fn processes_with_one_seed_share_one_batch() {
    let shares = |process_id| {
        let share = BatchShare {
            local_batch_size: NonZeroUsize::new(5).unwrap(),
            total_processes: NonZeroUsize::new(3).unwrap(),
            process_id,
        };
        let mut buffer = Buffer::new(BufferConfig { share, ..config(1) }).unwrap();
        for id in 0..40 {
            buffer.add(single(rollout(["a", "b"][id % 2], id, 0, NOW, 0.0)), NOW).unwrap();
        }
        let rows = buffer.sample(NOW).unwrap().unwrap();
        rows.iter().map(|row| row.rollout.env_example_id.to_string()).collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = (0..3).flat_map(shares).collect();
    assert_eq!(all.len(), 15);
    assert_eq!(shares(1), shares(1));
}

#[test]
fn old_tokens_make_a_rollout_stale_before_its_step_does() {
    let rules = Rules { step_delay_max: Some(10), token_delay_max: Some(2), ..Rules::default() };
    let mut buffer = Buffer::new(BufferConfig { rules, ..config(1) }).unwrap();
    buffer.set_step(4, NOW).unwrap();
    buffer.add(single(rollout("e", 1, 2, NOW, 0.0)), NOW).unwrap();
    assert_eq!(buffer.size(), 1);
    assert_eq!(buffer.set_step(5, NOW), Ok(1));
    assert_eq!(buffer.stats().dropped, BTreeMap::from([(DropReason::StaleTokens, 1)]));
}

#[test]
fn the_census_shows_what_dropping_the_slow_does() {
    let rules = Rules { age_secs_max: Some(50.0), ..Rules::default() };
    let mut buffer = Buffer::new(BufferConfig { rules, ..config(2) }).unwrap();
    for (id, age) in [(6, 100.0), (6, 100.0), (1, 0.0), (1, 0.0)] {
        buffer.add(single(rollout("e", id, 0, NOW - age, 0.0)), NOW).unwrap();
    }
    buffer.sample(NOW).unwrap().unwrap();
    let stats = buffer.stats();
    let (_, sides) = stats.census.envs().next().unwrap();
    assert_eq!((sides.generated.count(), sides.generated.mean()), (4, 3.5));
    assert_eq!((sides.trained.count(), sides.trained.mean()), (2, 1.0));
    assert_eq!(stats.dropped, BTreeMap::from([(DropReason::StaleTime, 2)]));
}

/// What a buffer does, on a plain list.
#[derive(Default)]
struct Model {
    rules: Rules,
    step: i64,
    held: Vec<(Arc<Rollout>, u32)>,
    dropped: BTreeMap<DropReason, u64>,
    retired: u64,
}

impl Model {
    fn reason(&self, rollout: &Rollout, now: f64) -> Option<DropReason> {
        let Metadata { weight_step, timestamp, .. } = rollout.metadata;
        if weight_step > self.step {
            Some(DropReason::FutureStep)
        } else if self.rules.step_delay_max.is_some_and(|delay| weight_step < self.step - delay as i64) {
            Some(DropReason::StaleStep)
        } else if self.rules.age_secs_max.is_some_and(|age| timestamp <= now - age) {
            Some(DropReason::StaleTime)
        } else {
            None
        }
    }

    fn drop(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    fn expire(&mut self, now: f64) {
        for (rollout, used) in std::mem::take(&mut self.held) {
            match self.reason(&rollout, now) {
                Some(reason) => self.drop(reason),
                None => self.held.push((rollout, used)),
            }
        }
    }

    fn add(&mut self, rollout: Arc<Rollout>, now: f64) {
        if let Some(reason) = self.reason(&rollout, now) {
            return self.drop(reason);
        }
        let env = rollout.env_name.clone();
        self.held.push((rollout, 0));
        let same: Vec<usize> = (0..self.held.len()).filter(|i| self.held[*i].0.env_name == env).collect();
        if same.len() > self.rules.capacity.get() {
            self.held.remove(same[0]);
            self.drop(DropReason::Capacity);
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Add { env: usize, behind: i64, age: f64 },
    Step(i64),
    Rewind(i64),
    Clock(f64),
    Sample,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0usize..3, -2i64..8, -5.0..60.0).prop_map(|(env, behind, age)| Action::Add { env, behind, age }),
        2 => (0i64..4).prop_map(Action::Step),
        1 => (0i64..3).prop_map(Action::Rewind),
        2 => prop_oneof![0.0..40.0, -100.0..0.0].prop_map(Action::Clock),
        4 => Just(Action::Sample),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_buffer_comes_to_the_same_as_a_plain_list(
        actions in proptest::collection::vec(action(), 1..120),
        capacity in 1usize..12,
        max_samples in proptest::option::of(1u32..4),
        step_delay_max in proptest::option::of(0u64..6),
        age_secs_max in proptest::option::of(1.0..50.0f64),
        select in prop_oneof![
            Just(Select::Recency { alpha: 3.0 }), Just(Select::Uniform), Just(Select::OldestFirst),
            Just(Select::NewestFirst), Just(Select::Prioritised { exponent: 1.0 }),
        ],
    ) {
        let rules = Rules {
            capacity: NonZeroUsize::new(capacity).unwrap(),
            select,
            max_samples: max_samples.and_then(NonZeroU32::new),
            step_delay_max,
            age_secs_max,
            ..Rules::default()
        };
        let batch = 2;
        let mut buffer = Buffer::new(BufferConfig { rules: rules.clone(), ..config(batch) }).unwrap();
        let mut model = Model { rules, ..Model::default() };
        let mut now = NOW;
        for (id, action) in actions.into_iter().enumerate() {
            match action {
                Action::Add { env, behind, age } => {
                    let new = rollout(["a", "b", "c"][env], id, model.step - behind, now - age, id as f64);
                    buffer.add(single(new.clone()), now).unwrap();
                    model.add(new, now);
                }
                Action::Step(ahead) => {
                    model.step += ahead;
                    model.expire(now);
                    buffer.set_step(model.step, now).unwrap();
                }
                Action::Rewind(back) => {
                    model.step -= back;
                    model.expire(now);
                    buffer.rewind(model.step, now);
                }
                Action::Clock(by) => now += by,
                Action::Sample => {
                    model.expire(now);
                    let sampled = buffer.sample(now);
                    let envs: BTreeSet<_> = model.held.iter().map(|(held, _)| held.env_name.clone()).collect();
                    if model.held.len() < batch {
                        prop_assert!(!matches!(sampled, Ok(Some(_))), "{} of {:?}", model.held.len(), envs);
                        continue;
                    }
                    let rows = sampled.unwrap().unwrap();
                    prop_assert_eq!(rows.len(), batch);
                    let mut seen = BTreeSet::new();
                    for row in rows {
                        prop_assert!(seen.insert(row.rollout.env_example_id.clone()), "the same twice");
                        prop_assert_eq!(model.reason(&row.rollout, now), None);
                        let at = model.held.iter().position(|(held, _)| Arc::ptr_eq(held, &row.rollout));
                        let at = at.expect("what is sampled is held");
                        model.held[at].1 += 1;
                        prop_assert_eq!(row.used, model.held[at].1);
                        if max_samples == Some(row.used) {
                            model.held.remove(at);
                            model.retired += 1;
                        }
                    }
                }
            }
            let stats = buffer.stats();
            prop_assert_eq!(stats.size, model.held.len());
            prop_assert_eq!(&stats.dropped, &model.dropped);
            prop_assert_eq!(stats.retired, model.retired);
            let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
            for (held, _) in &model.held {
                *sizes.entry(held.env_name.to_string()).or_default() += 1;
            }
            let found: BTreeMap<String, usize> = stats.env_sizes.into_iter().filter(|(_, size)| *size > 0).collect();
            prop_assert_eq!(found, sizes);
            let lost = stats.dropped.values().sum::<u64>() + stats.retired + stats.size as u64;
            prop_assert_eq!(stats.census.envs().map(|(_, sides)| sides.generated.count()).sum::<u64>(), lost);
        }
    }
}
