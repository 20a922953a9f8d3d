"""Rollouts to the token: what they are made of, and that nothing wrong gets in."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rollyard
from rollyard import (
    Drift,
    MaskedTokens,
    Message,
    MultiTurnLossMaskGenerator,
    Rollout,
    RolloutBatch,
    RolloutError,
    RolloutGroup,
    RolloutMetadata,
    Tokenizer,
)
from samples import CONVERSATION, make_rollout


def as_uint32(values: Any) -> Any:
    return np.asarray(values, dtype=np.uint32)


@pytest.mark.parametrize("ints", [list, tuple, np.array, jnp.array, as_uint32])
@pytest.mark.parametrize("floats", [list, np.array, jnp.array, np.float32, np.float16])
def test_a_rollout_is_made_of_lists_and_arrays(ints: Callable[..., Any], floats: Callable[..., Any]) -> None:
    rollout = Rollout("math", "a", ints([1, 2]), ints([3, 4]), floats([-0.5, -0.25]), floats([0.0, 1.0]), 1)
    assert rollout == Rollout("math", "a", [1, 2], [3, 4], [-0.5, -0.25], [0, 1], episode_reward=1.0)
    assert rollout.tokens.tolist() == [1, 2, 3, 4] and len(rollout) == 4
    assert (rollout.prompt_tokens.tolist(), rollout.response_tokens.tolist()) == ([1, 2], [3, 4])
    assert rollout.response_logprobs is not None
    assert (rollout.tokens.dtype.name, rollout.response_logprobs.dtype.name) == ("int32", "float32")
    assert rollout.token_rewards.tolist() == [0, 1] and rollout.episode_reward == 1


def test_arguments_have_marins_places() -> None:
    metadata = RolloutMetadata("host_1", 12.5, 3)
    rollout = Rollout("math", "a", [1], [2, 3], [-1, -2], [0, 1], 1.0, 0.5, 50, True, metadata, 0.25)
    assert (rollout.env_name, rollout.env_example_id) == ("math", "a")
    assert (rollout.temperature, rollout.top_k, rollout.is_truncated) == (0.5, 50, True)
    assert (rollout.metadata, rollout.correctness_reward) == (metadata, 0.25)


def test_what_is_left_out_has_a_default() -> None:
    rollout = Rollout("math", "a", [1], [2, 3])
    assert rollout.response_logprobs is None and rollout.token_rewards.tolist() == [0, 0]
    assert (rollout.episode_reward, rollout.temperature, rollout.top_k) == (0, None, None)
    assert rollout.loss_mask.tolist() == [1, 1] and rollout.exact and not rollout.is_truncated
    assert rollout.metadata == RolloutMetadata() == RolloutMetadata("", 0.0, -1)
    assert rollout.versions.tolist() == [-1, -1]


def test_a_rollout_may_be_empty() -> None:
    rollout = Rollout("", "", [], [])
    assert len(rollout) == 0 and rollout.tokens.shape == (0,) and rollout.turns == []


def test_turns_and_versions_follow_the_mask() -> None:
    rollout = make_rollout(response=4, loss_mask=[True, False, True, True], versions=[3, 9, 3, 4])
    assert rollout.turns == [((0, 2), (2, 3)), ((3, 4), (4, 6))]
    assert rollout.versions.tolist() == [3, -1, 3, 4]
    assert rollout.version_runs == [(3, 1), (-1, 1), (3, 1), (4, 1)]


def test_metadata_comes_after_the_environment() -> None:
    made = make_rollout(loss_mask=[1, 0, 1])
    sent = made.with_metadata(RolloutMetadata("host_1", 12.5, 7))
    assert (sent.metadata.worker_id, sent.metadata.weight_step) == ("host_1", 7)
    assert (made.metadata.weight_step, made.versions.tolist()) == (-1, [-1, -1, -1])
    assert sent.versions.tolist() == [7, -1, 7]
    assert sent == make_rollout(loss_mask=[1, 0, 1], metadata=sent.metadata)
    # What is known of single tokens is not overwritten by what is known of the whole.
    said = make_rollout(versions=[5, 5, 6]).with_metadata(RolloutMetadata(weight_step=7))
    assert said.versions.tolist() == [5, 5, 6]


NAN = float("nan")


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"response_logprobs": [-1]}, RolloutError, "response_logprobs has 1 values, but the response has 3"),
        ({"token_rewards": [1] * 4}, RolloutError, "token_rewards has 4 values, but the response has 3"),
        ({"loss_mask": []}, RolloutError, "loss_mask has 0 values"),
        ({"versions": [1, 2]}, RolloutError, "versions has 2 values"),
        ({"response_logprobs": [-1, NAN, -1]}, RolloutError, r"response_logprobs\[1\] is NaN"),
        ({"token_rewards": [0, 0, NAN]}, RolloutError, r"token_rewards\[2\] is NaN"),
        ({"response_tokens": [1, -5, 2]}, RolloutError, r"tokens\[3\] is -5"),
        ({"episode_reward": NAN}, RolloutError, "episode_reward is NaN"),
        ({"correctness_reward": float("inf")}, RolloutError, "correctness_reward is inf"),
        ({"temperature": NAN}, RolloutError, "temperature is NaN"),
        ({"metadata": RolloutMetadata("", NAN)}, RolloutError, "timestamp is NaN"),
        ({"prompt_tokens": [1.5]}, TypeError, r"prompt_tokens is \[1.5\]"),
        ({"prompt_tokens": ["a"]}, TypeError, "prompt_tokens"),
        ({"prompt_tokens": "abc"}, TypeError, "prompt_tokens is 'abc'"),
        ({"prompt_tokens": None}, TypeError, "prompt_tokens is None"),
        ({"prompt_tokens": [[1, 2]]}, TypeError, "prompt_tokens"),
        ({"prompt_tokens": [[1], [2, 3]]}, TypeError, "prompt_tokens"),
        ({"prompt_tokens": [1, 2**32 + 5]}, TypeError, r"prompt_tokens\[1\] is 4294967301"),
        ({"prompt_tokens": [2**70]}, TypeError, "prompt_tokens"),
        ({"response_tokens": as_uint32([0, 2**32 - 1])}, TypeError, r"response_tokens\[1\] is 4294967295"),
        ({"versions": [0.5, 1, 1]}, TypeError, "versions"),
        ({"response_logprobs": ["a", "b", "c"]}, TypeError, "response_logprobs"),
        ({"metadata": {"worker_id": "a"}}, TypeError, "metadata"),
        ({"top_k": 2**40}, OverflowError, "out of range"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_what_is_wrong_is_told_by_field(fields: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        make_rollout(**fields)


def test_a_rollout_never_changes() -> None:
    rollout = make_rollout()
    assert rollout.response_logprobs is not None
    views = (rollout.tokens, rollout.prompt_tokens, rollout.response_tokens, rollout.response_logprobs)
    for view in views:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 7
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    for name in ("env_name", "tokens", "metadata", "colour"):
        with pytest.raises(AttributeError):
            setattr(rollout, name, None)
    # Those that are written out belong to who asked.
    rollout.loss_mask[0] = 0
    assert rollout.loss_mask.tolist() == [1, 1, 1]


FULL = make_rollout(
    "ä",
    loss_mask=[1, 0, 1],
    versions=[3, -1, 4],
    token_rewards=[0, 0.5, 1],
    episode_reward=0.1,
    temperature=0.7,
    top_k=5,
    is_truncated=True,
    metadata=RolloutMetadata("host_1", 1.5, 4),
    correctness_reward=0.5,
    exact=False,
)

VALUES: list[tuple[Any, Any]] = [
    (FULL, make_rollout("ä")),
    (make_rollout(), make_rollout(response_logprobs=None)),
    (RolloutMetadata("host_1", 1.5, 4), RolloutMetadata("host_1", 1.5, 5)),
    (RolloutGroup([FULL]), RolloutGroup([])),
    (RolloutBatch([RolloutGroup([FULL])]), RolloutBatch([RolloutGroup([FULL])], RolloutMetadata("x"))),
    (Message("user", "hi", name="me"), Message("user", "hi")),
    (MaskedTokens([1, 2], [0, 1]), MaskedTokens([1, 2], [1, 1])),
    (Drift([((1, 3), (1, 2))]), Drift([])),
]


@pytest.mark.parametrize(("value", "other"), VALUES, ids=lambda value: type(value).__name__)
def test_values_are_pickled_copied_and_compared(value: Any, other: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(value, protocol))
        assert type(again) is type(value) and again == value and repr(again) == repr(value)
    for twin in (copy.copy(value), copy.deepcopy(value)):
        assert type(twin) is type(value) and twin == value
    assert value != other and value != "something else" and value is not None
    assert type(value).__name__ in repr(value)


def test_everything_of_a_rollout_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(FULL))
    for name in ("tokens", "response_logprobs", "token_rewards", "loss_mask", "versions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(FULL, name), strict=True)
    for name in ("temperature", "top_k", "is_truncated", "correctness_reward", "metadata", "exact", "turns"):
        assert getattr(again, name) == getattr(FULL, name), name


def test_metadata_has_a_hash_and_what_holds_tokens_has_none() -> None:
    assert {RolloutMetadata("a", 0.0), RolloutMetadata("a", -0.0)} == {RolloutMetadata("a")}
    for value in (FULL, MaskedTokens([1], [1]), RolloutGroup([FULL]), Message("user")):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


def test_a_repr_says_what_it_is() -> None:
    assert repr(make_rollout()) == (
        'Rollout("math", "a", 2 prompt + 3 response tokens, episode_reward=0.0, weight_step=-1)'
    )
    assert (
        repr(RolloutMetadata("w", 1.5, 3))
        == 'RolloutMetadata(worker_id="w", timestamp=1.5, weight_step=3, version=1)'
    )
    assert repr(MaskedTokens([1, 2], [0, 1])) == "MaskedTokens(2 tokens, 1 trained)"
    assert repr(Message("user", "hi", name="me")) == "Message('user', 'hi', name='me')"
    assert "regions=[((1, 3), (1, 2))]" in repr(Drift([((1, 3), (1, 2))]))


def test_groups_and_batches_are_walked_through() -> None:
    group = RolloutGroup([make_rollout(), make_rollout()])
    batch = RolloutBatch([group])
    assert len(group) == 2 and list(group) == group.rollouts
    assert len(batch) == 1 and list(batch) == [group] and batch.metadata == RolloutMetadata()


def test_a_message_is_a_dict() -> None:
    message = Message("assistant", tool_calls=[])
    assert json.loads(json.dumps(message)) == {"role": "assistant", "content": None, "tool_calls": []}
    assert (message.role, message.content) == ("assistant", None)


FACTS = {
    "uid": "u",
    "instance_id": 7,
    "env_name": "math",
    "reward": 0.5,
    "weight_version": 12,
    "timestamp": 1.5,
    "worker_id": "host_1",
    "temperature": 0.5,
    "top_k": 50,
    "extra_info": {"finish_reason": "length"},
    "messages": CONVERSATION,
}

SAID: dict[str, dict[str, Any]] = {
    "slime": {
        "tokens": [1, 2, 3, 4, 5],
        "response_length": 3,
        "loss_mask": [1, 0, 1],
        "rollout_log_probs": [-0.5, 0, -0.25],
    },
    "marin": {
        "prompt_tokens": [1, 2],
        "response_tokens": [3, 4, 5],
        "loss_mask": [1, 0, 1],
        "response_logprobs": [-0.5, 0, -0.25],
    },
    "turns": {
        "turns": [
            {"prompt_ids": [1, 2], "output_ids": [3], "logprobs": [-0.5]},
            {"prompt_ids": [1, 2, 3, 4], "output_ids": [5], "logprobs": [-0.25]},
        ]
    },
}


@pytest.mark.parametrize("way", SAID)
@pytest.mark.parametrize("write", [dict, json.dumps, lambda item: json.dumps(item).encode()])
def test_three_ways_to_say_tokens_are_one_rollout(way: str, write: Callable[..., Any]) -> None:
    rollout = Rollout.from_item(write(FACTS | SAID[way]))
    assert rollout == Rollout(
        "math",
        "7",
        [1, 2],
        [3, 4, 5],
        [-0.5, 0, -0.25],
        loss_mask=[1, 0, 1],
        episode_reward=0.5,
        temperature=0.5,
        top_k=50,
        is_truncated=True,
        metadata=RolloutMetadata("host_1", 1.5, 12),
    )
    assert rollout.exact and rollout.versions.tolist() == [12, -1, 12]


def test_an_item_may_hold_arrays() -> None:
    arrays = {key: np.array(value) for key, value in SAID["slime"].items()}
    assert Rollout.from_item(FACTS | arrays) == Rollout.from_item(FACTS | SAID["slime"])


def test_an_item_without_tokens_needs_masks(tokenizer: Tokenizer) -> None:
    with pytest.raises(RolloutError, match="carries no tokens .* give a tokenizer"):
        Rollout.from_item(FACTS)
    generator = MultiTurnLossMaskGenerator(tokenizer, "auto")
    for rollout in (generator.rollout(FACTS), Rollout.from_item(FACTS, masks=generator.masks)):
        token_ids, loss_mask = generator.get_loss_mask(CONVERSATION)
        assert not rollout.exact and rollout.episode_reward == 0.5 and rollout.env_example_id == "7"
        assert rollout.tokens.tolist() == token_ids
        first = loss_mask.index(1)
        assert len(rollout.prompt_tokens) == first and rollout.loss_mask.tolist() == loss_mask[first:]
    # Where tokens were sampled, text is not looked at.
    assert generator.rollout(FACTS | SAID["slime"]).exact


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"tokens": [1, 2]}, 'field "response_length" is missing'),
        ({"prompt_tokens": [1]}, 'field "response_tokens" is missing'),
        ({"tokens": [1], "response_length": 2}, "response_length is 2, but there are only 1"),
        ({"tokens": [1, "x"], "response_length": 1}, r'field "tokens\[1\]"'),
        ({"tokens": [1, 2], "response_length": 1, "logprobs": [1, 2, 3]}, "logprobs has 3 values"),
        ({"tokens": [1], "response_length": 1, "reward": float("nan")}, "'reward' is nan"),
        ({"tokens": [1], "response_length": 1, "x": object()}, "'x' is <object"),
        (
            {"turns": [{"prompt_ids": [1], "output_ids": [2]}, {"prompt_ids": [9], "output_ids": []}]},
            "rewritten",
        ),
        ([1, 2], "a rollout is a mapping, not list"),
        ('{"tokens": [1', "not a rollout"),
        ("", "not a rollout"),
    ],
)
def test_an_item_that_is_no_rollout_is_told(item: Any, words: str) -> None:
    with pytest.raises(RolloutError, match=words):
        Rollout.from_item(item)


def test_a_rollout_is_small() -> None:
    rollout = make_rollout(prompt=1000, response=3000)
    assert 4 * 4000 + 4 * 3000 <= rollout.size_bytes < 4 * 4000 + 4 * 3000 + 1000


def test_the_names_are_those_of_the_package() -> None:
    for value, _ in VALUES:
        assert getattr(rollyard, type(value).__name__) is type(value)
