//! Rollouts of all shapes, for the tests of columns and files.

use proptest::option;
use proptest::prelude::*;
use rollyard_core::rollout::{Draft, Metadata, Rollout};
use rollyard_store::rollouts::{About, OwnedRow};

/// The n-th row of a test: three tokens of prompt, four of response.
pub(crate) fn row(n: u32) -> OwnedRow {
    let id = i32::try_from(n).unwrap();
    let draft = Draft {
        env_name: "maths".into(),
        env_example_id: format!("maths_{n}"),
        tokens: vec![id, 1, 2, 10, 11, 12, 13],
        prompt_len: 3,
        logprobs: Some(vec![-0.5, -0.25, f32::NEG_INFINITY, -0.0]),
        sampled: n.is_multiple_of(2).then(|| vec![true, false, true, true]),
        versions: n.is_multiple_of(3).then(|| vec![3, -1, 4, 4]),
        token_rewards: n.is_multiple_of(2).then(|| vec![0.0, 0.5, 0.0, 1.0]),
        episode_reward: f64::from(n) / 3.0,
        metadata: Metadata { worker_id: "host_1".into(), timestamp: 1.5, weight_step: 4, version: 1 },
        temperature: Some(0.7),
        top_k: Some(50),
        is_truncated: true,
        correctness_reward: Some(0.25),
        retokenised: n == 1,
    };
    OwnedRow {
        rollout: Rollout::try_from(draft).unwrap(),
        group: n / 2,
        uid: Some(format!("uid-{n}")),
        advantage: Some(-0.0),
        used: Some(n),
    }
}

pub(crate) fn about() -> About {
    let metadata = Metadata { worker_id: "höst_7".into(), timestamp: 0.1, weight_step: -3, version: 2 };
    About { metadata, extras: [("run".to_owned(), "a\nb".to_owned())].into() }
}

/// Rows to the bit: `==` takes minus zero for zero.
pub(crate) fn exactly(rows: &[OwnedRow]) -> Vec<String> {
    rows.iter().map(|row| format!("{row:?}")).collect()
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<OwnedRow>> {
    let row = (rollout(), any::<u32>(), option::of(".{0,8}"), option::of(any::<f32>()), any::<Option<u32>>());
    let row = row.prop_map(|(rollout, group, uid, advantage, used)| {
        // A number that is none has many faces, which printing does not tell apart.
        let advantage = advantage.filter(|advantage| !advantage.is_nan());
        OwnedRow { rollout, group, uid, advantage, used }
    });
    prop::collection::vec(row, 0..6)
}

fn rollout() -> impl Strategy<Value = Rollout> {
    (0usize..5, 0usize..7)
        .prop_flat_map(|(prompt_len, response_len)| {
            let lists = (
                prop::collection::vec(0..i32::MAX, prompt_len + response_len),
                option::of(prop::collection::vec(
                    prop_oneof![any::<f32>(), Just(-0.0), Just(f32::NEG_INFINITY)],
                    response_len,
                )),
                option::of(prop::collection::vec(any::<bool>(), response_len)),
                option::of(prop::collection::vec(-1..3i32, response_len)),
                option::of(prop::collection::vec(
                    prop_oneof![Just(0.0f32), Just(-0.0), Just(1.5)],
                    response_len,
                )),
            );
            (Just(prompt_len), lists, facts())
        })
        .prop_map(|(prompt_len, (tokens, logprobs, sampled, versions, token_rewards), facts)| {
            let logprobs =
                logprobs.map(|values| values.into_iter().map(|v| if v.is_nan() { 0.0 } else { v }).collect());
            Rollout::try_from(Draft {
                tokens,
                prompt_len,
                logprobs,
                sampled,
                versions,
                token_rewards,
                ..facts
            })
            .unwrap()
        })
}

/// Everything but the lists.
fn facts() -> impl Strategy<Value = Draft> {
    let finite = || any::<f64>().prop_filter("rollouts have finite numbers", |value| value.is_finite());
    let temperature = option::of(any::<f32>().prop_filter("finite", |value| value.is_finite()));
    let metadata = (".{0,6}", finite(), any::<i64>(), any::<u32>());
    let flags = any::<(bool, bool, Option<i32>)>();
    let numbers = (prop_oneof![finite(), Just(-0.0)], option::of(finite()), temperature);
    (".{0,6}", ".{0,6}", metadata, flags, numbers).prop_map(
        |(env_name, env_example_id, metadata, flags, numbers)| {
            let (worker_id, timestamp, weight_step, version) = metadata;
            let (is_truncated, retokenised, top_k) = flags;
            let (episode_reward, correctness_reward, temperature) = numbers;
            let metadata = Metadata { worker_id, timestamp, weight_step, version };
            Draft {
                env_name,
                env_example_id,
                metadata,
                is_truncated,
                retokenised,
                top_k,
                episode_reward,
                correctness_reward,
                temperature,
                ..Draft::default()
            }
        },
    )
}
