use super::*;

fn context() -> Context {
    Context { run: "run".into(), task_id: 7, sample_idx: 0, attempt: 0, is_eval: false, seed: 1 }
}

fn dict(tensors: Vec<(&str, Tensor)>) -> TensorDict {
    tensors.into_iter().map(|(key, tensor)| (key.to_owned(), tensor)).collect()
}

fn ints(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::of(shape, values).unwrap()
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::of(shape, values).unwrap()
}

/// Two rows, the second padded on the left, with a token that was given after the first that was sampled.
fn two_rows() -> Vec<(&'static str, Tensor)> {
    vec![
        ("input_ids", ints(&[2, 5], &[1, 2, 3, 4, 5, 0, 6, 7, 8, 9])),
        (
            "attention_mask",
            Tensor::of_bools(&[2, 5], &[true, true, true, true, true, false, true, true, true, true])
                .unwrap(),
        ),
        ("loss_mask", ints(&[2, 5], &[0, 0, 1, 0, 1, 0, 0, 0, 1, 1])),
        ("logprobs", floats(&[2, 5], &[0.0, 0.0, -0.5, 0.0, -0.25, 0.0, 0.0, 0.0, -1.0, -2.0])),
        ("versions", ints(&[2, 5], &[-1, -1, 3, -1, 4, -1, -1, -1, 4, 4])),
        ("rewards", floats(&[2], &[1.0, 0.5])),
    ]
}

fn made(tensors: Vec<(&str, Tensor)>) -> Result<Trajectory, EpisodeError> {
    let part = Part { tensors: Some(dict(tensors)), ..Part::default() };
    trajectory(vec![part], &context()).map(Option::unwrap)
}

#[test]
fn each_row_is_a_sample_to_the_token() {
    let trajectory = made(two_rows()).unwrap();
    let [first, second] = trajectory.samples.as_slice() else { panic!("{:?}", trajectory.samples) };
    let rollout = first.rollout.as_ref().unwrap();
    assert_eq!((rollout.prompt_tokens(), rollout.response_tokens()), (&[1, 2][..], &[3, 4, 5][..]));
    assert_eq!(rollout.sampled().values().collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(rollout.versions().values().collect::<Vec<_>>(), [3, -1, 4]);
    assert_eq!((first.reward, rollout.metadata.weight_step), (1.0, 3));
    assert_eq!(first.segments, [Segment { tokens: 1, version: 3 }, Segment { tokens: 1, version: 4 }]);
    let rollout = second.rollout.as_ref().unwrap();
    assert_eq!((rollout.prompt_tokens(), rollout.response_tokens()), (&[6, 7][..], &[8, 9][..]));
    assert_eq!(rollout.response_logprobs(), Some(&[-1.0, -2.0][..]));
    assert_eq!(trajectory.tensors.unwrap().len(), 6);
}

#[test]
fn without_a_mask_the_versions_say_what_was_sampled_and_without_both_nothing_was() {
    for (left_out, prompt_len) in [(&["loss_mask"][..], 2), (&["loss_mask", "versions"], 5)] {
        let mut tensors = two_rows();
        tensors.retain(|(key, _)| !left_out.contains(key));
        let trajectory = made(tensors).unwrap();
        assert_eq!(trajectory.samples[0].rollout.as_ref().unwrap().prompt_len(), prompt_len, "{left_out:?}");
    }
}

#[test]
fn tensors_that_make_no_rollout_are_named() {
    let replaced = |key: &'static str, tensor: Tensor| {
        let mut tensors = two_rows();
        tensors.retain(|(known, _)| *known != key);
        tensors.push((key, tensor));
        tensors
    };
    let without = |key: &str| {
        let mut tensors = two_rows();
        tensors.retain(|(known, _)| *known != key);
        tensors
    };
    let cases = [
        (without("input_ids"), "a dict without \"input_ids\" (it has: attention_mask, loss_mask,"),
        (without("attention_mask"), "a dict without \"attention_mask\""),
        (
            replaced("input_ids", ints(&[10], &[1; 10])),
            "\"input_ids\" of shape [10], which is not [rows, length]",
        ),
        (
            replaced("logprobs", floats(&[2, 4], &[0.0; 8])),
            "\"logprobs\" of shape [2, 4], but \"input_ids\" has [2, 5]",
        ),
        (
            replaced("rewards", floats(&[3], &[0.0; 3])),
            "\"rewards\" of shape [3], but \"input_ids\" has 2 rows",
        ),
        (
            replaced("rewards", floats(&[2], &[0.0, f32::NAN])),
            "the reward of sample 1 of the workflow is NaN",
        ),
        (replaced("input_ids", floats(&[2, 5], &[0.5; 10])), "\"input_ids\" with a 0.5 in row 0"),
        (replaced("input_ids", ints(&[2, 5], &[-1; 10])), "row 0 whose tokens[0] is -1"),
    ];
    for (tensors, told) in cases {
        let error = made(tensors).unwrap_err();
        assert!(error.to_string().contains(told), "{error} does not say {told}");
        assert!(!error.may_pass(), "{error}");
    }
}

#[test]
fn interactions_are_rows_of_one_dict_and_text_alone_has_no_tensors() {
    let row = |len: usize| {
        let ids = (0..len as i64).collect::<Vec<_>>();
        dict(vec![("input_ids", ints(&[1, len], &ids)), ("attention_mask", ints(&[1, len], &vec![1; len]))])
    };
    let part = |tensors| Part { tensors, reward: Some(2.0), ..Part::default() };
    let both = trajectory(vec![part(Some(row(3))), part(Some(row(5)))], &context()).unwrap().unwrap();
    assert_eq!(both.tensors.unwrap()["input_ids"].shape(), [2, 5]);
    assert_eq!(both.samples.iter().map(|sample| sample.reward).collect::<Vec<_>>(), [2.0, 2.0]);
    let mixed = trajectory(vec![part(Some(row(3))), part(None)], &context()).unwrap().unwrap();
    assert!(mixed.tensors.is_none() && mixed.samples[1].rollout.is_none());
    assert!(trajectory(Vec::new(), &context()).unwrap().is_none());
}
