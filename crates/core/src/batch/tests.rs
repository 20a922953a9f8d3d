use super::balance::{Counts, share};
use super::*;
use crate::rollout::{Draft, Rollout};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn dict(entries: Vec<(&str, Tensor)>) -> TensorDict {
    entries.into_iter().map(|(key, tensor)| (key.to_owned(), tensor)).collect()
}

/// Rows of these lengths, the longest of which is the width.
fn padded(lengths: &[usize], seed: i32) -> TensorDict {
    let (rows, width) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0));
    let on: Vec<bool> = lengths.iter().flat_map(|len| (0..width).map(move |at| at < *len)).collect();
    let ids: Vec<i32> = (seed..).zip(&on).map(|(id, on)| if *on { id } else { 0 }).collect();
    let versions: Vec<i32> = on.iter().map(|on| if *on { seed } else { -1 }).collect();
    let rewards: Vec<f32> = lengths.iter().map(|len| *len as f32 / 2.0).collect();
    dict(vec![
        ("input_ids", Tensor::of(&[rows, width], &ids).unwrap()),
        ("attention_mask", Tensor::of_bools(&[rows, width], &on).unwrap()),
        ("versions", Tensor::of(&[rows, width], &versions).unwrap()),
        ("rewards", Tensor::of(&[rows], &rewards).unwrap()),
    ])
}

fn put_together(parts: &[TensorDict]) -> Result<TensorDict, BatchError> {
    concat(&parts.iter().map(views).collect::<Vec<_>>(), &PadValues::default())
}

fn ints(dict: &TensorDict, key: &str) -> Vec<i32> {
    dict[key].values::<i32>().unwrap().to_vec()
}

fn floats(dict: &TensorDict, key: &str) -> Vec<f32> {
    dict[key].values::<f32>().unwrap().to_vec()
}

/// Prompt of two tokens, then `response` with a tool result of two tokens in its middle if it is long enough.
fn rollout(response: usize) -> Rollout {
    Rollout::try_from(Draft {
        env_example_id: format!("maths_{response}"),
        tokens: (1..).take(2 + response).collect(),
        prompt_len: 2,
        logprobs: Some((0..response).map(|at| -(at as f32) / 8.0).collect()),
        sampled: Some((0..response).map(|at| !(1..3).contains(&at)).collect()),
        episode_reward: response as f64,
        metadata: crate::rollout::Metadata { weight_step: 9, ..Default::default() },
        ..Draft::default()
    })
    .unwrap()
}

#[test]
fn concatenation_pads_to_the_longest_and_keeps_types() {
    let all = put_together(&[padded(&[2], 10), padded(&[3, 1], 20)]).unwrap();
    assert_eq!(ints(&all, "input_ids"), [10, 11, 0, 20, 21, 22, 23, 0, 0]);
    assert_eq!(ints(&all, "versions"), [10, 10, -1, 20, 20, 20, 20, -1, -1]);
    assert_eq!(floats(&all, "rewards"), [1.0, 1.5, 0.5]);
    assert_eq!(all["attention_mask"].dtype(), DType::Bool);
    assert_eq!(all["attention_mask"].values::<u8>().unwrap(), [1, 1, 0, 1, 1, 1, 1, 0, 0]);
}

#[test]
fn concatenation_pads_every_dimension_after_the_first() {
    let wide = dict(vec![("x", Tensor::of(&[1, 1, 3], &[1_i64, 2, 3]).unwrap())]);
    let tall = dict(vec![("x", Tensor::of(&[1, 2, 1], &[4_i64, 5]).unwrap())]);
    let all = put_together(&[wide, tall]).unwrap();
    assert_eq!(all["x"].shape(), [2, 2, 3]);
    assert_eq!(all["x"].values::<i64>().unwrap(), [1, 2, 3, 0, 0, 0, 4, 0, 0, 5, 0, 0]);
}

#[test]
fn nothing_concatenates_to_nothing() {
    assert_eq!(put_together(&[]).unwrap(), TensorDict::new());
}

#[test]
fn dicts_that_do_not_fit_together_say_why() {
    let one = || Tensor::of(&[1, 2], &[1_i32, 2]).unwrap();
    let cases = [
        (
            vec![dict(vec![("a", one()), ("b", one())]), dict(vec![("a", one()), ("c", one())])],
            "dict 1 has other keys than dict 0: missing b unexpected c",
        ),
        (
            vec![dict(vec![("a", one())]), dict(vec![("a", Tensor::of(&[1, 1], &[0.5_f32]).unwrap())])],
            "\"a\" of dict 1 is float32, but int32 in dict 0",
        ),
        (
            vec![dict(vec![("a", one())]), dict(vec![("a", Tensor::of(&[2], &[1_i32, 2]).unwrap())])],
            "\"a\" of dict 1 is of shape [2], but of shape [1, 2] in dict 0",
        ),
        (
            vec![dict(vec![("a", one()), ("b", Tensor::of(&[2], &[1_i32, 2]).unwrap())])],
            "\"b\" of dict 0 has 2 rows, but \"a\" has 1",
        ),
        (
            vec![dict(vec![("a", Tensor::of(&[], &[1_i32]).unwrap())])],
            "\"a\" of dict 0 has no dimensions; the first is the batch",
        ),
        (
            vec![dict(vec![("versions", Tensor::of(&[1, 1], &[1_u8]).unwrap())])],
            "\"versions\" is uint8, which cannot hold the padding value -1",
        ),
    ];
    for (parts, expected) in cases {
        assert_eq!(put_together(&parts).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_split_needs_to_know_where_rows_end() {
    let blind = dict(vec![("a", Tensor::of(&[1, 2], &[1_i32, 2]).unwrap())]);
    let error = split(&views(&blind), &[1]).unwrap_err().to_string();
    assert!(error.contains("\"attention_mask\" is missing"), "{error}");
    let error = split(&views(&padded(&[1, 2], 0)), &[1, 2]).unwrap_err().to_string();
    assert_eq!(error, "the sizes [1, 2] add up to 3, but the batch has 2 rows");
}

#[test]
fn sequences_put_values_on_their_own_token() {
    let rollouts = [rollout(4), rollout(1)];
    let batch = sequences(&rollouts, &Layout { pad_token_id: 99, ..Layout::default() }).unwrap();
    assert_eq!(ints(&batch, "input_ids"), [1, 2, 3, 4, 5, 6, 1, 2, 3, 99, 99, 99]);
    assert_eq!(ints(&batch, "loss_mask"), [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(ints(&batch, "versions"), [-1, -1, 9, -1, -1, 9, -1, -1, 9, -1, -1, -1]);
    assert_eq!(
        floats(&batch, "logprobs"),
        [0.0, 0.0, 0.0, -0.125, -0.25, -0.375, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(floats(&batch, "rewards"), [4.0, 1.0]);
}

#[test]
fn a_training_batch_weighs_sampled_tokens_by_advantage() {
    let rollouts = [rollout(4), rollout(1)];
    let weighted = [
        Weighted { rollout: &rollouts[0], advantage: 0.5 },
        Weighted { rollout: &rollouts[1], advantage: -2.0 },
    ];
    let layout = Layout {
        max_tokens: NonZeroUsize::new(5),
        pad_to: PadTo::Multiple(NonZeroUsize::new(4).unwrap()),
        padding: Side::Left,
        ..Layout::default()
    };
    let batch = training(&weighted, &layout, None).unwrap();
    assert_eq!(batch["input_ids"].shape(), [2, 8]);
    assert_eq!(ints(&batch, "input_ids"), [0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 1, 2, 3]);
    assert_eq!(ints(&batch, "position_ids"), [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(
        floats(&batch, "loss_weights"),
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0]
    );
    assert_eq!(floats(&batch, "loss_masks").iter().sum::<f32>(), 2.0);
    assert_eq!(ints(&batch, "top_k"), [-1, -1]);
    assert_eq!(floats(&batch, "temperature"), [1.0, 1.0]);
}

#[test]
fn a_row_that_would_train_nothing_is_named() {
    let (good, bare) = (rollout(4), rollout(0));
    let unsampled = Rollout::try_from(Draft {
        env_example_id: "maths_x".into(),
        tokens: vec![1, 2, 3],
        prompt_len: 1,
        sampled: Some(vec![false; 2]),
        logprobs: Some(vec![0.0; 2]),
        ..Draft::default()
    })
    .unwrap();
    let silent = Rollout::try_from(Draft { tokens: vec![1, 2], prompt_len: 1, ..Draft::default() }).unwrap();
    let trimmed = Layout { max_tokens: NonZeroUsize::new(2), ..Layout::default() };
    let narrow = Layout { pad_to: PadTo::Exactly(3), ..Layout::default() };
    let cases = [
        (&bare, 1.0, Layout::default(), "row 1 (maths_0) has no token in the loss: the response is empty"),
        (
            &unsampled,
            1.0,
            Layout::default(),
            "row 1 (maths_x) has no token in the loss: none of its 2 response",
        ),
        (&good, 1.0, trimmed, "row 0 (maths_4) has no token in the loss: it was trimmed to 2 tokens"),
        (&good, 1.0, narrow, "row 0 (maths_4) has 6 tokens, more than the 3 of a row"),
        (&good, f32::NAN, Layout::default(), "the advantage of row 1 (maths_4) is NaN"),
        (&silent, 1.0, Layout::default(), "row 1 has no log-probs, but row 0 has"),
    ];
    for (second, advantage, layout, expected) in cases {
        let rows = [Weighted { rollout: &good, advantage: 1.0 }, Weighted { rollout: second, advantage }];
        let error = training(&rows, &layout, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(training(&[], &Layout::default(), None).unwrap_err(), BatchError::Empty);
}

/// Two tokens of prompt, then five tokens of which the third was given by a tool.
fn aged(versions: [i32; 5]) -> Rollout {
    Rollout::try_from(Draft {
        env_example_id: "aged".into(),
        tokens: (1..=7).collect(),
        prompt_len: 2,
        sampled: Some(vec![true, true, false, true, true]),
        versions: Some(versions.into()),
        ..Draft::default()
    })
    .unwrap()
}

#[test]
fn a_token_of_old_weights_keeps_its_place_but_leaves_the_loss() {
    let rollout = aged([3, 3, 9, 4, 5]);
    let rows = [Weighted { rollout: &rollout, advantage: 2.0 }];
    let cases = [
        (None, [0.0, 0.0, 2.0, 2.0, 0.0, 2.0, 2.0]),
        (Some(-7), [0.0, 0.0, 2.0, 2.0, 0.0, 2.0, 2.0]),
        (Some(3), [0.0, 0.0, 2.0, 2.0, 0.0, 2.0, 2.0]),
        (Some(4), [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0]),
        (Some(5), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]),
    ];
    for (oldest, expected) in cases {
        let batch = training(&rows, &Layout::default(), oldest).unwrap();
        assert_eq!(floats(&batch, "loss_weights"), expected, "{oldest:?}");
        assert_eq!(floats(&batch, "loss_masks"), expected.map(|weight| weight / 2.0), "{oldest:?}");
        assert_eq!(ints(&batch, "input_ids"), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(batch["attention_mask"].values::<u8>().unwrap(), [1; 7]);
    }
    let error = training(&rows, &Layout::default(), Some(6)).unwrap_err().to_string();
    assert_eq!(
        error,
        "row 0 (aged) has no token in the loss: all that was sampled of its 5 response tokens is older than \
         version 6"
    );
}

#[test]
fn a_token_of_unknown_weights_counts_as_old() {
    let rollout = aged([-1, 4, -1, -1, 4]);
    let rows = [Weighted { rollout: &rollout, advantage: 1.0 }];
    let weights = |oldest| floats(&training(&rows, &Layout::default(), oldest).unwrap(), "loss_weights");
    assert_eq!(weights(Some(0)), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(weights(Some(-1)), weights(None));
}

#[test]
fn memory_begins_on_a_line() {
    for len in [1, 7, 64, 1000] {
        assert_eq!(Tensor::zeros(DType::F32, &[len]).address() % 64, 0);
    }
}

#[test]
fn packing_flattens_what_attention_sees() {
    let rollouts = [rollout(4), rollout(1), rollout(2)];
    let left = Layout { padding: Side::Left, ..Layout::default() };
    for layout in [Layout::default(), left] {
        let batch = sequences(&rollouts, &layout).unwrap();
        let flat = packing::flatten(&views(&batch), &[0, 2]).unwrap();
        assert_eq!(ints(&flat, "input_ids"), [1, 2, 3, 4, 5, 6, 1, 2, 3, 4]);
        assert_eq!(ints(&flat, "position_ids"), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]);
        assert_eq!(ints(&flat, "cu_seqlens"), [0, 6, 10]);
        assert_eq!(floats(&flat, "rewards"), [4.0, 2.0]);
        assert!(!flat.contains_key("attention_mask"));
        assert!(packing::flatten(&views(&batch), &[3]).is_err());
    }
}

#[test]
fn packing_keeps_every_row_and_the_budget() {
    let batch = sequences(&[rollout(4), rollout(1), rollout(2)], &Layout::default()).unwrap();
    let bins = packing::pack(&views(&batch), 7).unwrap();
    assert_eq!(
        bins.iter().map(|bin| ints(bin, "cu_seqlens")).collect::<Vec<_>>(),
        [vec![0, 6], vec![0, 3, 7]]
    );
    assert!(packing::pack(&views(&batch), 5).unwrap_err().to_string().starts_with("sequence 0 has 6 tokens"));
}

#[test]
fn a_digest_does_not_look_at_the_order_of_names() {
    let batch = sequences(&[rollout(4)], &Layout::default()).unwrap();
    let reversed: TensorDict = batch.clone().into_iter().rev().collect();
    assert_eq!(digest(&views(&batch)), digest(&views(&reversed)));
}

#[test]
fn a_sequence_over_the_budget_is_named() {
    let error = packing::plan(&[5, 9, 3], 8).unwrap_err().to_string();
    assert_eq!(error, "sequence 1 has 9 tokens, more than the budget of 8");
    assert!(packing::plan(&[1], 0).is_err());
    assert_eq!(packing::plan(&[], 8).unwrap(), Vec::<Vec<usize>>::new());
}

#[test]
fn ranks_that_cannot_be_equal_are_refused() {
    let error = share(&[1, 2, 3], 2, Counts::Equal).unwrap_err().to_string();
    assert_eq!(error, "3 sequences cannot be shared out equally over 2 ranks; give a multiple of 2");
    assert!(share(&[1], 0, Counts::Any).is_err());
    assert_eq!(share(&[], 2, Counts::Any).unwrap(), vec![Vec::<usize>::new(); 2]);
}

/// Tutorial numbers of the differencing method: 8, 7, 6, 5, 4 over two ranks end 2 apart.
#[test]
fn differencing_gives_the_known_answer() {
    let ranks = share(&[8, 7, 6, 5, 4], 2, Counts::Any).unwrap();
    let costs = [8, 7, 6, 5, 4];
    let mut sums: Vec<u64> = ranks.iter().map(|rows| rows.iter().map(|row| costs[*row]).sum()).collect();
    sums.sort_unstable();
    assert_eq!(sums, [14, 16]);
}

fn sorted(bins: &[Vec<usize>]) -> Vec<usize> {
    let mut all: Vec<usize> = bins.concat();
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn concat_then_split_is_identity(
        parts in prop::collection::vec(prop::collection::vec(1usize..9, 1..4), 1..6)
    ) {
        let dicts: Vec<TensorDict> = parts.iter().zip(1..).map(|(lengths, nth)| padded(lengths, 100 * nth)).collect();
        let all = put_together(&dicts).unwrap();
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        let back = split(&views(&all), &sizes).unwrap();
        prop_assert_eq!(&back, &dicts);
        let again = put_together(&back).unwrap();
        prop_assert_eq!(digest(&views(&again)), digest(&views(&all)));
    }

    #[test]
    fn packing_loses_nothing_and_never_splits(
        lengths in prop::collection::vec(0usize..100, 0..60), budget in 99usize..300
    ) {
        let bins = packing::plan(&lengths, budget).unwrap();
        prop_assert_eq!(sorted(&bins), (0..lengths.len()).collect::<Vec<_>>());
        for bin in &bins {
            prop_assert!(bin.iter().map(|index| lengths[*index]).sum::<usize>() <= budget);
        }
        // First fit leaves at most one bin half empty.
        let half_empty = bins.iter().filter(|bin| bin.iter().map(|i| lengths[*i]).sum::<usize>() * 2 <= budget);
        prop_assert!(half_empty.count() <= 1);
    }

    #[test]
    fn ranks_end_within_the_largest_cost(
        costs in prop::collection::vec(0u64..1000, 0..60), ranks in 1usize..9, equal: bool
    ) {
        let take = if equal { costs.len() / ranks * ranks } else { costs.len() };
        let costs = &costs[..take];
        let counts = if equal { Counts::Equal } else { Counts::Any };
        let shares = share(costs, ranks, counts).unwrap();
        prop_assert_eq!(shares.len(), ranks);
        prop_assert_eq!(sorted(&shares), (0..take).collect::<Vec<_>>());
        let sums: Vec<u64> = shares.iter().map(|rows| rows.iter().map(|row| costs[*row]).sum()).collect();
        let spread = sums.iter().max().unwrap() - sums.iter().min().unwrap();
        prop_assert!(spread <= costs.iter().copied().max().unwrap_or(0));
        if equal {
            prop_assert!(shares.iter().all(|rows| rows.len() == take / ranks));
        }
        prop_assert_eq!(shares, share(costs, ranks, counts).unwrap());
    }
}

#[test]
fn two_threads_fill_what_one_would() {
    let rollouts: Vec<Rollout> = [3, 1, 5, 4, 2].map(rollout).into();
    for padding in [Side::Left, Side::Right] {
        let narrow = Layout { padding, pad_to: PadTo::Exactly(8), ..Layout::default() };
        // Wide enough for two threads.
        let wide = Layout { padding, pad_to: PadTo::Exactly(1 << 20), ..Layout::default() };
        let (narrow, wide) = (sequences(&rollouts, &narrow).unwrap(), sequences(&rollouts, &wide).unwrap());
        for row in 0..rollouts.len() {
            let flat = |batch: &TensorDict| packing::flatten(&views(batch), &[row]).unwrap();
            assert_eq!(flat(&narrow), flat(&wide));
        }
    }
}
