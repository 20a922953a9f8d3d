"""Tensor dicts: put together and taken apart without a loss, packed, shared out, laid out for training."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollyard
from rollyard import (
    BatchError,
    balance,
    concat_padded_tensors,
    digest,
    pack,
    pack_tensors,
    split_padded_tensors,
    tensor_dict,
    training_batch,
)
from samples import make_rollout, make_rollouts, run_python

Batch = dict[str, npt.NDArray[Any]]

ROW_DTYPES = ("int32", "int64", "float16", "float32", "float64", "bool", "uint8")


@st.composite
def parts(draw: st.DrawFn) -> list[Batch]:
    """Dicts of the same keys, each as wide as its longest row."""
    keys = draw(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(ROW_DTYPES), max_size=3))
    made: list[Batch] = []
    for _ in range(draw(st.integers(1, 5))):
        lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
        shape = (len(lengths), max(lengths))
        numbers = np.random.default_rng(draw(st.integers(0, 99)))
        mask = np.arange(shape[1]) < np.array(lengths)[:, None]
        part: Batch = {"attention_mask": mask}
        for key, dtype in keys.items():
            part[key] = (numbers.integers(0, 2, shape) * mask).astype(dtype)
        part["vectors"] = numbers.random((*shape, 3), dtype=np.float32) * mask[..., None]
        part["rewards"] = numbers.random(len(lengths), dtype=np.float32)
        made.append(part)
    return made


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for key, array in one.items():
        assert type(array) is type(other[key]), key
        assert array.dtype == other[key].dtype, key
        np.testing.assert_array_equal(np.asarray(array), np.asarray(other[key]), err_msg=key, strict=True)


@given(parts())
def test_what_is_put_together_comes_apart_as_it_was(given: list[Batch]) -> None:
    whole = concat_padded_tensors(given)
    sizes = [len(part["rewards"]) for part in given]
    assert len(whole["rewards"]) == sum(sizes)
    for one, other in zip(split_padded_tensors(whole, sizes), given, strict=True):
        assert_same(one, other)


@given(parts())
def test_concatenation_pads_on_the_right_with_zeros(given: list[Batch]) -> None:
    whole = concat_padded_tensors(given)
    mask = whole["attention_mask"]
    assert mask.shape[1] == max(part["attention_mask"].shape[1] for part in given)
    top = 0
    for part in given:
        rows, width = part["attention_mask"].shape
        assert not whole["vectors"][top : top + rows, width:].any()
        assert not mask[top : top + rows, width:].any()
        top += rows


@given(parts())
def test_rows_come_apart_one_by_one(given: list[Batch]) -> None:
    whole = concat_padded_tensors(given)
    rows = split_padded_tensors(whole)
    assert [row["attention_mask"].shape for row in rows] == [(1, n) for n in whole["attention_mask"].sum(1)]
    assert_same(concat_padded_tensors(rows), whole)


@pytest.mark.parametrize("dtype", [*ROW_DTYPES, "int8", "int16", ml_dtypes.bfloat16])
def test_a_type_is_kept(dtype: Any) -> None:
    ones = np.ones((1, 2), dtype=dtype)
    whole = concat_padded_tensors([{"x": ones}, {"x": ones[:, :1]}])
    assert whole["x"].dtype == ones.dtype
    assert whole["x"].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", "bfloat16", "float32"])
def test_jax_arrays_come_back_as_jax_arrays(dtype: str) -> None:
    ones = jnp.ones((1, 2), dtype=dtype)
    whole = concat_padded_tensors([{"x": ones}, {"x": ones[:, :1]}])
    assert isinstance(whole["x"], type(ones)) and whole["x"].dtype == ones.dtype
    assert whole["x"].tolist() == [[1, 1], [1, 0]]


def test_each_key_comes_back_as_what_it_was() -> None:
    mixed = {"attention_mask": np.ones((2, 2), bool), "x": jnp.ones((2, 2))}
    for batch in (concat_padded_tensors([mixed, mixed]), *split_padded_tensors(mixed)):
        assert isinstance(batch["attention_mask"], np.ndarray) and isinstance(batch["x"], type(jnp.ones(1)))


def test_torch_tensors_come_back_as_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here; JAX shows the same")
    for dtype in (torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32):
        ones = torch.ones((1, 2), dtype=dtype)
        whole = concat_padded_tensors([{"x": ones}, {"x": ones[:, :1]}])
        assert whole["x"].dtype == dtype and whole["x"].tolist() == [[1, 1], [1, 0]]


def test_arrays_that_lie_crosswise_are_read_right() -> None:
    crosswise = np.arange(6, dtype=np.int32).reshape(3, 2).T
    assert concat_padded_tensors([{"x": crosswise}])["x"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert digest({"x": crosswise}) == digest({"x": crosswise.copy()})


def test_padding_has_a_value_and_masks_and_versions_their_own() -> None:
    keys = ("input_ids", "attention_mask", "loss_mask", "versions")
    long, short = ({key: np.full((1, n), 5, np.int32) for key in keys} for n in (3, 1))
    whole = concat_padded_tensors([long, short], pad_value=9)
    assert {key: whole[key][1].tolist() for key in keys} == {
        "input_ids": [5, 9, 9],
        "attention_mask": [5, 0, 0],
        "loss_mask": [5, 0, 0],
        "versions": [5, -1, -1],
    }


ONE: Batch = {"x": np.zeros((1, 2), np.int32), "y": np.zeros(1, np.float32)}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"x": ONE["x"]}, "dict 1 has other keys than dict 0: missing y"),
        (ONE | {"z": ONE["y"]}, "dict 1 has other keys than dict 0: unexpected z"),
        (ONE | {"x": ONE["x"].astype("int64")}, '"x" of dict 1 is int64, but int32 in dict 0'),
        (ONE | {"x": ONE["x"][..., None]}, r'"x" of dict 1 is of shape \[1, 2, 1\], but of shape \[1, 2\]'),
        (ONE | {"y": np.zeros(2, np.float32)}, '"y" of dict 1 has 2 rows, but "x" has 1'),
        (ONE | {"y": np.float32(1)}, '"y" of dict 1 has no dimensions'),
        (ONE | {"y": np.array(["one"])}, '"y" is of type <U3; known are bool'),
        (ONE | {"y": np.array([None])}, "'y' is of type object"),
    ],
)
def test_dicts_that_do_not_fit_are_told_by_key(other: Batch, words: str) -> None:
    with pytest.raises(BatchError, match=words):
        concat_padded_tensors([ONE, other])


def test_nothing_gives_nothing() -> None:
    assert concat_padded_tensors([]) == {}
    assert pack([], max_tokens=5) == []
    assert balance([], 2) == [[], []]


def test_a_value_that_a_type_cannot_hold_is_no_padding() -> None:
    with pytest.raises(BatchError, match='"x" is bool, which cannot hold the padding value 7'):
        concat_padded_tensors([{"x": np.ones((1, 2), bool)}], pad_value=7)


@pytest.mark.parametrize(
    ("batch", "sizes", "words"),
    [
        ({"x": np.ones((2, 2))}, None, '"attention_mask" is missing'),
        ({"attention_mask": np.ones(2, bool)}, None, r"bool of shape \[2\]"),
        (
            {"attention_mask": np.ones((2, 2), bool)},
            [1],
            r"sizes \[1\] add up to 1, .* has 2 rows",
        ),
    ],
)
def test_a_batch_that_cannot_be_split_is_told(batch: Batch, sizes: list[int] | None, words: str) -> None:
    with pytest.raises(BatchError, match=words):
        split_padded_tensors(batch, sizes)


lengths = st.lists(st.integers(0, 50), max_size=60)


@given(lengths)
def test_packing_loses_nothing_and_keeps_to_the_budget(given: list[int]) -> None:
    bins = pack(given, max_tokens=50)
    assert sorted(index for rows in bins for index in rows) == list(range(len(given)))
    assert all(sum(given[index] for index in rows) <= 50 for rows in bins)
    # First-fit decreasing: at most 11/9 of the fewest bins possible, and one more.
    assert len(bins) <= math.ceil(sum(given) / 50) * 2 + 1
    assert bins == pack(np.array(given, dtype=np.int64), max_tokens=50)


def test_a_sequence_longer_than_the_budget_is_named() -> None:
    with pytest.raises(BatchError, match="sequence 1 has 9 tokens, more than the budget of 5"):
        pack([5, 9], max_tokens=5)
    with pytest.raises(BatchError, match="budget is 0"):
        pack([], max_tokens=0)


@given(st.integers(1, 12), st.integers(0, 9), st.sampled_from(["right", "left"]))
def test_packed_rows_are_the_rows_without_padding(count: int, seed: int, side: Any) -> None:
    rollouts = make_rollouts(count, seed=seed)
    batch = tensor_dict(rollouts, padding_side=side)
    bins = pack_tensors(batch, max_tokens=128)
    planned = pack([len(rollout) for rollout in rollouts], max_tokens=128)
    assert len(bins) == len(planned)
    for flat, rows in zip(bins, planned, strict=True):
        starts = flat["cu_seqlens"]
        assert starts.dtype == np.int32 and starts[0] == 0 and starts[-1] == len(flat["input_ids"]) <= 128
        assert "attention_mask" not in flat
        for row, start, end in zip(rows, starts, starts[1:], strict=False):
            np.testing.assert_array_equal(flat["input_ids"][start:end], rollouts[row].tokens)
            np.testing.assert_array_equal(flat["position_ids"][start:end], range(end - start))
        np.testing.assert_array_equal(flat["rewards"], batch["rewards"][rows])


def test_packing_gives_back_jax_arrays_for_jax_arrays() -> None:
    batch = {key: jnp.asarray(array) for key, array in tensor_dict(make_rollouts(4)).items()}
    [flat] = pack_tensors(batch, max_tokens=4096)
    assert all(isinstance(array, type(jnp.ones(1))) for array in flat.values())


@given(lengths, st.integers(1, 8))
def test_ranks_differ_by_no_more_than_the_longest(given: list[int], ranks: int) -> None:
    shares = balance(given, ranks)
    assert len(shares) == ranks
    assert sorted(row for rows in shares for row in rows) == list(range(len(given)))
    sums = [sum(given[row] for row in rows) for rows in shares]
    assert max(sums) - min(sums) <= max(given, default=0)
    assert shares == balance(iter(given), ranks)


@given(st.integers(1, 8), st.integers(0, 8), st.randoms(use_true_random=False))
def test_ranks_get_equally_many_rows_if_they_must(ranks: int, each: int, numbers: Any) -> None:
    given = [numbers.randint(0, 99) for _ in range(ranks * each)]
    shares = balance(given, ranks, equal_size=True)
    assert [len(rows) for rows in shares] == [each] * ranks
    sums = [sum(given[row] for row in rows) for rows in shares]
    assert max(sums) - min(sums) <= max(given, default=0)


def test_what_cannot_be_shared_out_is_told() -> None:
    with pytest.raises(BatchError, match="3 sequences cannot be shared out equally over 2 ranks"):
        balance([1, 2, 3], 2, equal_size=True)
    with pytest.raises(BatchError, match="number of ranks is 0"):
        balance([1], 0)


FIELDS = {
    "input_ids": ("int32", [[1, 2, 100, 101, 102], [1, 100, 0, 0, 0]]),
    "attention_mask": ("bool", [[True] * 5, [True, True, False, False, False]]),
    "position_ids": ("int32", [[0, 1, 2, 3, 4], [0, 1, 0, 0, 0]]),
    "loss_masks": ("float32", [[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]]),
    "loss_weights": ("float32", [[0, 0, 2, 0, 2], [0, -1, 0, 0, 0]]),
    "policy_logprobs": ("float32", [[0, 0, -0.5, -0.25, -0.125], [0, -0.5, 0, 0, 0]]),
    "temperature": ("float32", [0.5, 1.0]),
    "top_k": ("int32", [50, -1]),
    "truncated": ("bool", [True, False]),
}


def two_rollouts() -> list[rollyard.Rollout]:
    long = make_rollout("a", loss_mask=[1, 0, 1], temperature=0.5, top_k=50, is_truncated=True)
    return [long, make_rollout("b", prompt=1, response=1)]


def test_a_training_batch_has_these_fields() -> None:
    batch = training_batch(two_rollouts(), [2.0, -1.0])
    told = {key: (str(array.dtype), array.tolist()) for key, array in batch.items()}
    assert told == FIELDS


def test_a_tensor_dict_has_these_fields() -> None:
    rollouts = [two_rollouts()[0], make_rollout("b", prompt=1, response=1, versions=[7], episode_reward=0.5)]
    batch = tensor_dict(rollouts, pad_token_id=99)
    assert {key: (str(array.dtype), array.tolist()) for key, array in batch.items()} == {
        "input_ids": ("int32", [[1, 2, 100, 101, 102], [1, 100, 99, 99, 99]]),
        "attention_mask": FIELDS["attention_mask"],
        "loss_mask": ("int32", [[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]]),
        "logprobs": FIELDS["policy_logprobs"],
        "versions": ("int32", [[-1] * 5, [-1, 7, -1, -1, -1]]),
        "rewards": ("float32", [0.0, 0.5]),
    }


def test_padding_on_the_left_moves_every_row_to_the_right() -> None:
    right, left = (
        training_batch(two_rollouts(), [2.0, -1.0], padding_side=side) for side in ("right", "left")
    )
    for key, array in right.items():
        moved = array.copy()
        if array.ndim == 2:
            moved[1] = np.roll(array[1], 3)
        np.testing.assert_array_equal(left[key], moved, err_msg=key)


@pytest.mark.parametrize(
    ("layout", "width"),
    [
        ({}, 5),
        ({"pad_to_multiple": 4}, 8),
        ({"pad_to_multiple": 5}, 5),
        ({"pad_to": 9}, 9),
        ({"max_tokens": 4}, 4),
        ({"max_tokens": 4, "pad_to_multiple": 8}, 8),
        ({"max_tokens": 100}, 5),
    ],
)
def test_the_width_is_the_longest_row_or_what_is_asked_for(layout: dict[str, int], width: int) -> None:
    batch = training_batch(two_rollouts(), [1.0, 1.0], **layout)  # type: ignore[arg-type]
    tokens = [1, 2, 100, 101, 102][: layout.get("max_tokens", 5)]
    assert batch["input_ids"].shape == (2, width)
    assert batch["input_ids"][0].tolist() == tokens + [0] * (width - len(tokens))
    assert batch["attention_mask"].sum(1).tolist() == [len(tokens), 2]


@pytest.mark.parametrize(
    ("rollout", "layout", "words"),
    [
        (make_rollout("b", loss_mask=[0, 0, 0]), {}, r"row 1 \(b\) has no token in the loss: none of its 3"),
        (make_rollout("b", response=0), {}, r"row 1 \(b\) has no token in the loss: the response is empty"),
        (make_rollout("b", prompt=5), {"max_tokens": 4}, r"row 1 \(b\) .* trimmed to 4 tokens.* is at 5"),
        (make_rollout("b", response_logprobs=None), {}, r"row 1 \(b\) has no log-probs, but row 0 has"),
        (
            make_rollout("b", response=9),
            {"pad_to": 7},
            r"row 1 \(b\) has 11 tokens, more than the 7",
        ),
        (make_rollout("b"), {"pad_to": 7, "pad_to_multiple": 8}, "give one of them"),
        (make_rollout("b"), {"padding_side": "top"}, 'padding_side is "top"'),
        (make_rollout("b"), {"max_tokens": 0}, "max_tokens is 0"),
    ],
)
def test_a_row_that_does_not_train_is_named(
    rollout: rollyard.Rollout, layout: dict[str, Any], words: str
) -> None:
    with pytest.raises(BatchError, match=words):
        training_batch([make_rollout("a"), rollout], [1.0, 1.0], **layout)


def test_no_rollouts_and_no_numbers_are_no_batch() -> None:
    with pytest.raises(BatchError, match="there are no rollouts"):
        training_batch([], [])
    with pytest.raises(BatchError, match="there are no rollouts"):
        tensor_dict([])
    for bad in (float("nan"), float("inf"), 1e300):
        with pytest.raises(BatchError, match=r"the advantage of row 1 \(b\) is (NaN|inf)"):
            training_batch(two_rollouts(), [1.0, bad])
    with pytest.raises(BatchError, match="3 advantages for 2 rollouts"):
        training_batch(two_rollouts(), np.ones(3))
    with pytest.raises(TypeError, match="Rollout"):
        training_batch([{"tokens": [1]}], [1.0])  # type: ignore[list-item]


def test_rollouts_without_log_probs_make_a_batch_without_them() -> None:
    bare = make_rollout(response_logprobs=None)
    assert "policy_logprobs" not in training_batch([bare], [1.0])
    assert "logprobs" not in tensor_dict([bare])


def test_a_digest_is_of_names_types_shapes_and_bytes() -> None:
    batch = {"x": np.zeros((2, 3), np.int32), "y": np.zeros(2, np.float32)}
    same: list[dict[str, Any]] = [
        batch,
        {"y": batch["y"], "x": batch["x"].copy()},
        {key: jnp.asarray(x) for key, x in batch.items()},
    ]
    assert len({digest(each) for each in same}) == 1
    changed = batch["x"].copy()
    changed[1, 2] = 1
    others = [
        batch | {"x": changed},
        batch | {"x": batch["x"].T},
        batch | {"x": batch["x"].view(np.float32)},
        batch | {"z": batch["y"]},
        {"x": batch["x"], "z": batch["y"]},
        {"x": batch["x"]},
        {},
    ]
    assert len({digest(each) for each in [batch, *others]}) == 1 + len(others)


DIGEST = """
from rollyard import balance, digest, tensor_dict
from samples import make_rollouts
rollouts = make_rollouts(32)
print(digest(tensor_dict(rollouts)), balance(map(len, rollouts), 4, equal_size=True))
"""


def test_two_processes_make_the_same_batch_and_the_same_shares() -> None:
    rollouts = make_rollouts(32)
    here = f"{digest(tensor_dict(rollouts))} {balance(map(len, rollouts), 4, equal_size=True)}"
    assert run_python(DIGEST) == run_python(DIGEST) == here
