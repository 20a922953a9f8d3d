use super::*;

fn draft() -> Draft {
    Draft {
        tokens: vec![1, 2, 3, 10, 11, 4, 5, 12],
        prompt_len: 3,
        logprobs: Some(vec![-0.1, -0.2, 0.0, 0.0, -0.3]),
        sampled: Some(vec![true, true, false, false, true]),
        metadata: Metadata { weight_step: 7, ..Metadata::default() },
        ..Draft::default()
    }
}

fn refusal(change: impl FnOnce(&mut Draft)) -> String {
    let mut draft = draft();
    change(&mut draft);
    Rollout::try_from(draft).unwrap_err().to_string()
}

#[test]
fn a_tool_result_ends_a_turn() {
    let rollout = Rollout::try_from(draft()).unwrap();
    let turns = rollout.turns();
    assert_eq!(turns, [Turn { given: 0..3, sampled: 3..5 }, Turn { given: 5..7, sampled: 7..8 }]);
}

#[test]
fn given_tokens_have_no_version() {
    let rollout = Rollout::try_from(draft()).unwrap();
    assert_eq!(rollout.versions().values().collect::<Vec<_>>(), [7, 7, -1, -1, 7]);
    let said = Rollout::try_from(Draft { versions: Some(vec![6, 7, 7, 7, 8]), ..draft() }).unwrap();
    assert_eq!(said.versions().values().collect::<Vec<_>>(), [6, 7, -1, -1, 8]);
}

#[test]
fn parts_of_different_length_are_refused_by_name() {
    let cases = [
        (
            Draft { logprobs: Some(vec![0.0; 4]), ..draft() },
            "response_logprobs has 4 values, but the response has 5 tokens",
        ),
        (
            Draft { sampled: Some(vec![true; 8]), ..draft() },
            "loss_mask has 8 values, but the response has 5 tokens",
        ),
        (Draft { versions: Some(vec![]), ..draft() }, "versions has 0 values, but the response has 5 tokens"),
        (
            Draft { prompt_len: 9, ..draft() },
            "the prompt is 9 tokens long, but there are only 8 tokens in all",
        ),
    ];
    for (draft, expected) in cases {
        assert_eq!(Rollout::try_from(draft).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_value_that_cannot_be_is_named() {
    let negative = refusal(|d| d.tokens[6] = -5);
    assert_eq!(negative, "tokens[6] is -5, but must be a token id, from 0");
    let nan = refusal(|d| d.logprobs = Some(vec![0.0, f32::NAN, 0.0, 0.0, 0.0]));
    assert_eq!(nan, "response_logprobs[1] is NaN, but must be a number");
    let endless = refusal(|d| d.token_rewards = Some(vec![0.0, 0.0, f32::INFINITY, 0.0, 0.0]));
    assert_eq!(endless, "token_rewards[2] is inf, but must be a finite number");
}

/// Two thousand tokens with log-probabilities and two weight versions.
#[test]
fn a_rollout_takes_little_more_than_its_arrays() {
    let response = 1_500;
    let rollout = Rollout::try_from(Draft {
        env_name: "maths".into(),
        env_example_id: "maths_123456".into(),
        tokens: (0..2_000).collect(),
        prompt_len: 500,
        logprobs: Some(vec![-0.5; response]),
        versions: Some((0..response).map(|at| if at < 700 { 3 } else { 4 }).collect()),
        ..Draft::default()
    })
    .unwrap();
    let raw = 2_000 * 4 + response * 4;
    assert!(rollout.size_bytes() * 100 < raw * 115, "{} bytes for {raw}", rollout.size_bytes());
}

#[test]
fn versions_follow_the_weight_step_unless_they_were_said() {
    let later = || Metadata { weight_step: 9, ..Metadata::default() };
    let rollout = Rollout::try_from(draft()).unwrap().with_metadata(later()).unwrap();
    assert_eq!(rollout.versions().values().collect::<Vec<_>>(), [9, 9, -1, -1, 9]);
    let said = Rollout::try_from(Draft { versions: Some(vec![6, 7, 7, 7, 8]), ..draft() }).unwrap();
    assert_eq!(said.with_metadata(later()).unwrap().versions(), said.versions());
}

#[test]
fn only_a_rollout_without_metadata_takes_that_of_its_batch() {
    let batch =
        Metadata { worker_id: "host_1".into(), timestamp: 1.5, weight_step: 9, ..Metadata::default() };
    let missing = Metadata { version: 7, ..Metadata::default() };
    for (own, expected) in [(missing, &batch), (draft().metadata, &draft().metadata)] {
        let mut rollout = Rollout::try_from(Draft { metadata: own, ..draft() }).unwrap();
        rollout.fill_metadata(&batch).unwrap();
        assert_eq!(&rollout.metadata, expected);
        assert!(rollout.has_one_version());
    }
    let said = Rollout::try_from(Draft { versions: Some(vec![6, 7, 7, 7, 8]), ..draft() }).unwrap();
    assert!(!said.has_one_version());
}

#[test]
fn numbers_that_are_none_are_refused_by_name() {
    let nan = f64::NAN;
    assert_eq!(
        refusal(|draft| draft.episode_reward = nan),
        "episode_reward is NaN, but must be a finite number"
    );
    assert!(refusal(|draft| draft.correctness_reward = Some(nan)).starts_with("correctness_reward is NaN"));
    assert!(refusal(|draft| draft.temperature = Some(f32::INFINITY)).starts_with("temperature is inf"));
    assert!(refusal(|draft| draft.metadata.timestamp = nan).starts_with("timestamp is NaN"));
}
