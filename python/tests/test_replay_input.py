"""What goes into a replay buffer: batches of any program, and nothing that is wrong."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from replaying import NOW, Squares, batch_of, foreign_batch, made, make_buffer, many, names
from rollyard import (
    MinSize,
    PacedError,
    Queue,
    ReplayBuffer,
    ReplayBufferConfig,
    ReplayError,
    RolloutBatch,
    RolloutError,
    RolloutGroup,
    RolloutMetadata,
    RolloutWithAdvantage,
    RolloutWithCount,
    SampleToInsertRatio,
)
from samples import make_rollout


@pytest.mark.parametrize("where", ["rollout", "batch"])
def test_batches_of_another_program_are_taken(where: str) -> None:
    buffer = make_buffer(local_batch_size=1)
    buffer.set_current_step(3)
    assert buffer.add_batches([foreign_batch(metadata=where)]) == 2
    rows = buffer.sample_rollouts()
    assert rows is not None
    rollout = rows[0].rollout
    assert rollout.metadata == RolloutMetadata("host_2", NOW, 3) and rows[0].weight_step == 3
    assert (rollout.tokens.tolist(), rollout.versions.tolist()) == ([1, 2, 3, 4], [3, 3])
    assert rollout.is_truncated and rollout.episode_reward == 1.0


def test_a_batch_from_before_rollouts_had_metadata_is_read() -> None:
    old = RolloutBatch([RolloutGroup([make_rollout("a")])], RolloutMetadata("host_9", NOW, 2))
    old = pickle.loads(pickle.dumps(old))
    buffer = make_buffer(local_batch_size=1)
    buffer.set_current_step(2)
    assert buffer.add_batches([old]) == 1
    rows = buffer.sample_rollouts()
    assert rows is not None and rows[0].rollout.metadata == RolloutMetadata("host_9", NOW, 2)


def test_a_rollout_is_not_copied() -> None:
    rollout = made("a")
    buffer = make_buffer(local_batch_size=1)
    buffer.add_batches([batch_of([rollout])])
    rows = buffer.sample_rollouts()
    assert rows is not None and rows[0].rollout.tokens.ctypes.data == rollout.tokens.ctypes.data
    assert rows[0].rollout is rows[0].rollout


def lengths_that_differ() -> SimpleNamespace:
    batch = foreign_batch()
    batch.groups[0].rollouts[1].response_logprobs = [-0.5]
    return batch


BAD_BATCHES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: batch_of([]), ReplayError, "batch 1: group 0 has no rollouts"),
    (lambda: batch_of([made("x")], []), ReplayError, "batch 1: group 1 has no rollouts"),
    (
        lambda: batch_of([made("x")], [made("y"), make_rollout("z")]),
        ReplayError,
        r'batch 1: rollout 1 \("z"\) in group 1 has no metadata, and its batch has none either',
    ),
    (lambda: foreign_batch(metadata="nowhere"), ReplayError, r'batch 1: rollout 0 \("f"\) in group 0 has no'),
    (
        lengths_that_differ,
        RolloutError,
        "batch 1: rollout 1 in group 0: response_logprobs has 1 values, but the response has 2 tokens",
    ),
    (lambda: SimpleNamespace(), TypeError, "a SimpleNamespace was given, which has no groups"),
    (
        lambda: SimpleNamespace(groups=[SimpleNamespace(rollouts=[{}])]),
        TypeError,
        "batch 1: rollout 0 in group 0: a dict was given, which has no env_name",
    ),
    (lambda: 7, TypeError, "a int was given, which has no groups"),
]


@pytest.mark.parametrize(("bad", "kind", "words"), BAD_BATCHES)
def test_a_call_with_a_bad_batch_adds_nothing(
    bad: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    buffer = make_buffer()
    with pytest.raises(kind, match=words):
        buffer.add_batches([many(3), bad(), many(3)])
    stats = buffer.get_stats()
    assert (buffer.size(), stats["total_batches_added"], stats["groups"], stats["added"]) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ([1.0], ReplayError, "batch 0: group 0 has 2 rollouts, but 1 advantages"),
        ([1.0, float("nan")], ReplayError, r'advantage of rollout 1 \("a"\) in group 0 is NaN'),
        ("no", TypeError, "advantages is 'no'"),
    ],
)
def test_a_module_that_answers_wrongly_adds_nothing(answer: Any, kind: type[Exception], words: str) -> None:
    buffer = make_buffer(loss_module=Squares(lambda _: answer))
    with pytest.raises(kind, match=words):
        buffer.add_batches([batch_of([made("a"), made("a")])])
    assert buffer.size() == 0


NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"capacity": -1}, ReplayError, "capacity = -1 is not at least 1"),
        ({"capacity": 0}, ReplayError, "capacity = 0"),
        ({"capacity": "many"}, TypeError, "capacity: 'str' object"),
        ({"local_batch_size": 0}, ReplayError, "local_batch_size = 0 is not at least 1"),
        ({"alpha": NAN}, ReplayError, "alpha = NaN is not a number from 0 to 1000"),
        ({"alpha": -1.0}, ReplayError, "alpha = -1"),
        ({"max_samples": 0}, ReplayError, "max_samples = 0 is not at least 1"),
        ({"max_samples": 2**40}, ReplayError, "max_samples = 1099511627776 is not at most"),
        ({"max_rollout_timestamp_delay": NAN}, ReplayError, "max_rollout_timestamp_delay = NaN"),
        ({"total_processes": 0}, ReplayError, "total_processes = 0"),
        ({"process_id": 1}, ReplayError, r"process_id = 1 is not below total_processes \(1\)"),
        ({"process_id": -1}, ReplayError, "process_id = -1 is not at least 0"),
        ({"select": "best"}, ReplayError, 'select = "best" is not one of recency, uniform, oldest, newest'),
        ({"balance": "fair"}, ReplayError, 'balance = "fair" is not .*proportional.*equal'),
        ({"loss_module": "gae"}, ReplayError, 'loss_module = "gae" is not one of rloo, grpo'),
        ({"loss_module": 7}, TypeError, "loss_module is a int; give a name, or an object with compute_"),
        ({"limiter": 7}, TypeError, "limiter: a int was given; give a SampleToInsertRatio, MinSize or Queue"),
        ({"limiter": MinSize(0)}, ReplayError, "min_size_to_sample = 0 is not at least 1"),
        ({"limiter": Queue(-3)}, ReplayError, "size = 0 is not at least 1"),
        ({"limiter": SampleToInsertRatio(4.0, 1, 3.0)}, ReplayError, "error_buffer = 3"),
        ({"limiter": Queue(3)}, ReplayError, "4 at once can never pass the limiter"),
    ],
)
def test_a_buffer_that_makes_no_sense_is_refused(
    changes: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        make_buffer(**changes)


def test_a_batch_larger_than_all_that_fits_is_an_error_instead_of_none_for_ever() -> None:
    buffer = make_buffer(capacity=2, local_batch_size=4)
    buffer.add_batches([many(2)])
    with pytest.raises(ReplayError, match=r"a batch of 4 can never be drawn: 1 environment\(s\) are full"):
        buffer.sample_rollouts()
    buffer.add_batches([many(2, env="code")])
    assert len(names(buffer.sample_rollouts())) == 4


def test_what_can_be_sent_to_another_process_survives_it() -> None:
    buffer = make_buffer()
    buffer.add_batches([many(4, episode_reward=1.0)])
    rows = buffer.sample_rollouts()
    assert rows is not None
    config = ReplayBufferConfig(10, 3.0, 2, 5, limiter=Queue(4), select="uniform")
    weighed = RolloutWithAdvantage(made("a"), 0.5)
    for thing in (
        config,
        weighed,
        rows,
        Queue(4),
        MinSize(3),
        SampleToInsertRatio(1.0, 2, 3.0),
        PacedError("no"),
    ):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(thing, protocol))
            assert type(again) is type(thing) and (again == thing or isinstance(thing, PacedError))
    with pytest.raises(TypeError, match="a ReplayBuffer is not pickled: make one in each process"):
        pickle.dumps(buffer)


def test_rows_can_be_made_compared_and_taken_apart() -> None:
    row = RolloutWithCount(made("a"), 0.5, usage_count=2, weight_step=7)
    assert isinstance(row, RolloutWithAdvantage) and row == RolloutWithCount(made("a"), 0.5, 2, 7)
    others = [
        RolloutWithCount(made("b"), 0.5, 2, 7),
        RolloutWithCount(made("a"), 0.25, 2, 7),
        RolloutWithCount(made("a"), 0.5, 1, 7),
        RolloutWithCount(made("a"), 0.5, 2, 6),
        RolloutWithAdvantage(made("a"), 0.5),
    ]
    assert all(row != other and other != row for other in others)
    assert RolloutWithCount(made("a"), 0.5) == RolloutWithCount(made("a"), advantage=0.5, usage_count=0)
    assert repr(row).endswith("weight_step=0), 0.5, usage_count=2, weight_step=7)")
    assert repr(others[-1]).startswith('RolloutWithAdvantage(Rollout("math", "a"')


def test_a_config_makes_a_buffer_for_each_process() -> None:
    config = ReplayBufferConfig(3, 3.0, 1, 5, max_rollout_timestamp_delay=60.0, select="newest")
    assert config == ReplayBufferConfig(
        capacity=3, alpha=3.0, max_samples=1, max_rollout_step_delay=5, max_rollout_timestamp_delay=60.0,
        filter_out_groups_with_no_variance=False, select="newest",
    )  # fmt: skip
    ranks = [
        ReplayBuffer.from_config(config, 1, 2, "rloo", 7, process_id=rank, clock=lambda: NOW)
        for rank in (0, 1)
    ]
    for rank in ranks:
        rank.add_batches([many(4)])
    assert [names(rank.sample_rollouts()) for rank in ranks] == [["3"], ["2"]]
    assert [rank.size() for rank in ranks] == [1, 1]


def test_all_of_marins_keywords_work() -> None:
    buffer = ReplayBuffer(
        capacity=10,
        local_batch_size=1,
        alpha=3.0,
        total_processes=1,
        max_samples=-1,
        max_rollout_step_delay=5,
        max_rollout_timestamp_delay=3600.0,
        filter_out_groups_with_no_variance=False,
        loss_module=Squares(),
        seed=42,
    )
    buffer.add_batches([many(1, at=time.time())])
    assert names(buffer.sample_rollouts()) == ["0"]
