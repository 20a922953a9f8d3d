"""Rollouts with advantages as the batch a trainer reads, under marin's names."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rollyard
from rollyard import (
    BatchError,
    Rollout,
    RolloutWithAdvantage,
    TrainingBatch,
    create_training_batch_from_rollouts,
    training_batch,
    trim_and_pad,
)
from samples import make_rollout

PAIR = [
    RolloutWithAdvantage(make_rollout("a", response=4, temperature=0.5, top_k=7, is_truncated=True), 0.5),
    RolloutWithAdvantage(make_rollout("b", response=1), -2.0),
]


def test_a_row_is_prompt_and_response_weighed_by_the_advantage() -> None:
    batch = create_training_batch_from_rollouts(PAIR, 5, 99, 4)
    assert batch.input_ids.tolist() == [[1, 2, 100, 101, 102, 99, 99, 99], [1, 2, 100, 99, 99, 99, 99, 99]]
    assert batch.position_ids[0].tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    assert batch.loss_masks.tolist() == [[0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0]]
    assert batch.loss_weights.tolist() == [[0, 0, 0.5, 0.5, 0.5, 0, 0, 0], [0, 0, -2, 0, 0, 0, 0, 0]]
    assert batch.policy_logprobs[0].tolist() == [0, 0, -0.5, -0.25, -0.125, 0, 0, 0]
    assert batch.temperature.tolist() == [0.5, 1.0] and batch.top_k.tolist() == [7, -1]
    assert batch.truncated.tolist() == [True, False]


@pytest.mark.parametrize(
    ("places", "width"), [((5, 0), 5), ((5, 0, None), 5), ((5, 0, 0), 5), ((5, 0, 4), 8), ((100, 0), 6)]
)
def test_a_batch_is_as_wide_as_its_longest_row(places: tuple[Any, ...], width: int) -> None:
    assert create_training_batch_from_rollouts(PAIR, *places).input_ids.shape == (2, width)


def test_a_batch_is_a_dict_with_attributes() -> None:
    batch = create_training_batch_from_rollouts(PAIR, 8, 0)
    assert isinstance(batch, TrainingBatch) and isinstance(batch, dict)
    assert batch.input_ids is batch["input_ids"] and "loss_weights" in dir(batch)
    plain = training_batch([pair.rollout for pair in PAIR], [0.5, -2.0], max_tokens=8)
    assert rollyard.digest(batch) == rollyard.digest(plain)
    with pytest.raises(AttributeError, match="no 'segment_ids'; it has input_ids, attention_mask"):
        _ = batch.segment_ids
    again = pickle.loads(pickle.dumps(batch))
    assert type(again) is TrainingBatch and rollyard.digest(again) == rollyard.digest(batch)


def foreign(rollout: Rollout, **changes: Any) -> SimpleNamespace:
    """The same as an object of another program, with arrays of another library."""
    fields = {
        "env_name": rollout.env_name,
        "env_example_id": rollout.env_example_id,
        "prompt_tokens": jnp.asarray(rollout.prompt_tokens),
        "response_tokens": rollout.response_tokens.tolist(),
        "response_logprobs": jnp.asarray(rollout.response_logprobs),
        "token_rewards": np.asarray(rollout.token_rewards, dtype=np.float64),
        "episode_reward": np.float32(rollout.episode_reward),
        "temperature": rollout.temperature,
        "top_k": rollout.top_k,
        "is_truncated": np.bool_(rollout.is_truncated),
        "correctness_reward": None,
    }
    return SimpleNamespace(**(fields | changes))


def test_rollouts_of_another_program_make_the_same_batch() -> None:
    others: Any = [SimpleNamespace(rollout=foreign(one.rollout), advantage=one.advantage) for one in PAIR]
    batch = create_training_batch_from_rollouts(others, 8, 0)
    assert rollyard.digest(batch) == rollyard.digest(create_training_batch_from_rollouts(PAIR, 8, 0))


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        ([], BatchError, "no rollouts to make a batch of"),
        ([RolloutWithAdvantage(make_rollout("x", response=0), 1)], BatchError, r"row 0 \(x\) has no token"),
        ([RolloutWithAdvantage(make_rollout("x", prompt=9), 1)], BatchError, "first to train on is at 9"),
        ([RolloutWithAdvantage(make_rollout("x"), float("nan"))], BatchError, r"advantage of row 0 \(x\)"),
        ([SimpleNamespace(rollout={}, advantage=1)], TypeError, "a dict was given, which has no env_name"),
    ],
)
def test_what_makes_no_batch_is_refused(rows: list[Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        create_training_batch_from_rollouts(rows, 8, 0)
    assert issubclass(BatchError, ValueError)


def test_old_tokens_stay_in_the_row_but_not_in_the_loss() -> None:
    rollout = make_rollout("a", response=4, versions=[3, 3, 4, 5])
    pair = [RolloutWithAdvantage(rollout, 2.0)]
    batch = create_training_batch_from_rollouts(pair, 8, 0, oldest_version=4)
    assert batch.loss_weights.tolist() == [[0, 0, 0, 0, 2, 2]]
    assert batch.loss_masks.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert batch.input_ids.tolist() == [[1, 2, 100, 101, 102, 103]] and batch.attention_mask.all()
    assert training_batch([rollout], [2.0], oldest_version=3)["loss_masks"].sum() == 4
    with pytest.raises(BatchError, match=r"row 0 \(a\) .* 4 response tokens is older than version 6"):
        training_batch([rollout], [2.0], oldest_version=6)


@pytest.mark.parametrize(
    ("values", "places", "expected"),
    [
        ([1, 2, 3], (5,), [1, 2, 3, 0, 0]),
        ([1, 2, 3], (2,), [1, 2]),
        ([1, 2, 3], (2, 4, 9), [1, 2, 9, 9]),
        ([1.5], (3, 2, -1), [1.5, -1]),
        ([], (2,), [0, 0]),
    ],
)
def test_an_array_is_trimmed_and_padded(values: list[Any], places: tuple[Any, ...], expected: Any) -> None:
    array = np.array(values)
    done = trim_and_pad(array, *places)
    assert done.tolist() == expected and done.dtype == array.dtype


def test_padding_to_less_than_there_is_says_so() -> None:
    with pytest.raises(ValueError, match="pad_to is 2, but 3 values are left after trimming to 5"):
        trim_and_pad(np.arange(3), 5, pad_to=2)
