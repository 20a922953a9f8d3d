"""The replay buffer: what it keeps, what it picks, what that is worth, and what it says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rollyard
from replaying import NOW, Clock, Squares, batch_of, made, make_buffer, many, names
from rollyard import (
    ReplayBuffer,
    ReplayError,
    create_training_batch_from_rollouts,
)


def test_capacity_keeps_the_newest_of_each_environment() -> None:
    buffer = make_buffer(capacity=3, local_batch_size=1, select="oldest")
    buffer.add_batches([many(5), many(2, env="code")])
    stats = buffer.get_stats()
    assert (len(buffer), buffer.size(), stats["env_sizes"]) == (5, 5, {"code": 2, "math": 3})
    assert stats["dropped"] == {"capacity": 2}
    alone = make_buffer(capacity=3, local_batch_size=3, select="oldest")
    alone.add_batches([many(5)])
    assert names(alone.sample_rollouts()) == ["2", "3", "4"]


def test_a_rollout_retires_after_its_last_use() -> None:
    buffer = make_buffer(max_samples=3, local_batch_size=2)
    buffer.add_batches([many(2)])
    for use in (1, 2, 3):
        rows = buffer.sample_rollouts()
        assert rows is not None and [row.usage_count for row in rows] == [use, use]
    assert buffer.sample_rollouts() is None
    assert (buffer.size(), buffer.get_stats()["retired"]) == (0, 2)
    assert buffer, "a buffer is true even when it is empty"


def test_too_few_rollouts_give_none() -> None:
    buffer = make_buffer(local_batch_size=4)
    assert buffer.sample_rollouts() is None and buffer.sample_batch(8, 0) is None
    buffer.add_batches([many(3)])
    assert buffer.sample_rollouts() is None
    buffer.add_batches([many(1, first=3)])
    assert sorted(names(buffer.sample_rollouts())) == ["0", "1", "2", "3"]


STALE = [
    ("too many steps behind", {"step": 4}, "stale_step"),
    ("as far behind as it may be", {"step": 5}, None),
    ("of weights that are not there yet", {"step": 11}, "future_step"),
    ("too old", {"step": 10, "at": NOW - 60.0}, "stale_time"),
    ("just young enough", {"step": 10, "at": NOW - 59.9}, None),
]


@pytest.mark.parametrize(("fields", "reason"), [case[1:] for case in STALE], ids=[case[0] for case in STALE])
def test_what_is_stale_is_not_added(fields: dict[str, Any], reason: str | None) -> None:
    buffer = make_buffer(max_rollout_step_delay=5, max_rollout_timestamp_delay=60.0)
    buffer.set_current_step(10)
    assert buffer.add_batches([many(1, **fields)]) == (reason is None)
    assert buffer.get_stats()["dropped"] == ({} if reason is None else {reason: 1})


def test_freshness_is_looked_at_rollout_by_rollout() -> None:
    buffer = make_buffer(max_rollout_step_delay=5, local_batch_size=1)
    buffer.set_current_step(10)
    assert buffer.add_batches([batch_of([made("old", step=4), made("new", step=6)])]) == 1
    assert names(buffer.sample_rollouts()) == ["new"]


def test_what_becomes_stale_leaves_when_the_step_changes() -> None:
    buffer = make_buffer(max_rollout_step_delay=2, local_batch_size=1)
    buffer.set_current_step(1)
    buffer.add_batches([many(3, step=0), many(2, first=3, step=1)])
    assert [buffer.set_current_step(step) for step in (2, 3, 3, 4)] == [0, 3, 0, 2]
    assert buffer.sample_rollouts() is None


def test_what_became_stale_by_time_is_not_sampled() -> None:
    clock = Clock()
    buffer = make_buffer(max_rollout_timestamp_delay=60.0, local_batch_size=1, clock=clock)
    buffer.add_batches([many(1, at=NOW), many(1, first=1, at=NOW + 30.0)])
    clock.now = NOW + 60.0
    assert names(buffer.sample_rollouts()) == ["1"]
    assert buffer.get_stats()["dropped"] == {"stale_time": 1}
    clock.now = NOW - 1e6
    assert names(buffer.sample_rollouts()) == ["1"], "a clock that jumps back brings nothing back"


def test_negative_is_no_limit() -> None:
    buffer = make_buffer(max_rollout_step_delay=-1, max_rollout_timestamp_delay=-1.0, local_batch_size=1)
    buffer.set_current_step(10**9)
    assert buffer.add_batches([many(1, step=0, at=1.0)]) == 1
    assert buffer.sample_rollouts() is not None


def test_a_rewind_goes_back_and_drops_what_is_ahead() -> None:
    buffer = make_buffer(local_batch_size=1)
    buffer.set_current_step(5)
    buffer.add_batches([many(2, step=5), many(3, first=2, step=3)])
    with pytest.raises(ReplayError, match="step 4 is before step 5, where the trainer is; rewind to go back"):
        buffer.set_current_step(4)
    assert (buffer.rewind(4), buffer.size(), buffer.get_stats()["current_step"]) == (2, 3, 4)


def test_groups_without_variance_are_counted_and_dropped_if_asked() -> None:
    even = [made("a", episode_reward=1.0), made("a", episode_reward=1.0)]
    odd = [made("b", episode_reward=1.0), made("b", episode_reward=0.0)]
    for drops, kept in ((False, 4), (True, 2)):
        buffer = make_buffer(filter_out_groups_with_no_variance=drops)
        assert buffer.add_batches([batch_of(even, odd)]) == kept
        stats = buffer.get_stats()
        assert (stats["groups"], stats["groups_without_variance"]) == (2, 1)


def test_newer_rollouts_are_picked_more_often() -> None:
    buffer = make_buffer(capacity=100, local_batch_size=10)
    buffer.add_batches([many(100)])
    picked = Counter(int(name) for _ in range(200) for name in names(buffer.sample_rollouts()))
    quarters = [sum(picked[n] for n in range(start, start + 25)) for start in (0, 25, 50, 75)]
    assert quarters == sorted(quarters) and quarters[3] > 8 * max(quarters[0], 1)
    even = make_buffer(capacity=100, local_batch_size=10, alpha=0.0)
    even.add_batches([many(100)])
    picked = Counter(int(name) for _ in range(200) for name in names(even.sample_rollouts()))
    assert min(sum(picked[n] for n in range(start, start + 25)) for start in (0, 25, 50, 75)) > 400


@pytest.mark.parametrize(
    ("select", "expected"), [("oldest", ["0", "1", "2", "3"]), ("newest", ["9", "8", "7", "6"])]
)
def test_a_strict_order_is_kept(select: str, expected: list[str]) -> None:
    buffer = make_buffer(select=select)
    buffer.add_batches([many(10)])
    assert names(buffer.sample_rollouts()) == expected


def test_priorities_are_the_sizes_of_advantages() -> None:
    buffer = make_buffer(select="prioritised", alpha=1.0, loss_module="raw", local_batch_size=2)
    rewards = [0.0, 0.0, 0.0, -50.0, 50.0]
    buffer.add_batches([batch_of([made(str(n), episode_reward=reward) for n, reward in enumerate(rewards)])])
    for _ in range(20):
        assert set(names(buffer.sample_rollouts())) == {"3", "4"}


def test_no_rollout_is_twice_in_a_batch() -> None:
    buffer = make_buffer(local_batch_size=9)
    buffer.add_batches([many(10)])
    for _ in range(50):
        assert len(set(names(buffer.sample_rollouts()))) == 9


def test_environments_share_a_batch() -> None:
    def envs(balance: str) -> Counter[str]:
        buffer = make_buffer(local_batch_size=20, balance=balance)
        buffer.add_batches([many(300, env="math"), many(100, first=300, env="code")])
        drawn = (buffer.sample_rollouts() or [] for _ in range(20))
        return Counter(row.rollout.env_name for rows in drawn for row in rows)

    assert envs("equal") == {"math": 200, "code": 200}
    proportional = envs("proportional")
    assert 250 < proportional["math"] < 350 and proportional.total() == 400


def test_the_same_seed_gives_the_same_batches() -> None:
    def run(seed: int) -> list[list[str]]:
        buffer = make_buffer(seed=seed)
        buffer.add_batches([many(50), many(50, first=50, env="code")])
        return [names(buffer.sample_rollouts()) for _ in range(5)]

    assert run(7) == run(7) != run(8)
    assert run(-1) == run(-1)


def test_processes_get_disjoint_shares_of_one_batch() -> None:
    def buffers(local: int, processes: int) -> list[ReplayBuffer]:
        made_ = [
            make_buffer(local_batch_size=local, total_processes=processes, process_id=n, seed=3)
            for n in range(processes)
        ]
        for buffer in made_:
            buffer.add_batches([many(40), many(40, first=40, env="code")])
        return made_

    (whole,) = buffers(12, 1)
    ranks = buffers(4, 3)
    for _ in range(5):
        shares = [names(rank.sample_rollouts()) for rank in ranks]
        assert [name for share in shares for name in share] == names(whole.sample_rollouts())
        assert len({name for share in shares for name in share}) == 12
    assert make_buffer(local_batch_size=4, total_processes=3).add_batches([many(11)]) == 11
    few = make_buffer(local_batch_size=4, total_processes=3)
    few.add_batches([many(11)])
    assert few.sample_rollouts() is None, "the batch is the global one"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rloo", [2 / 3, -2 / 3, -2 / 3, 2 / 3]),
        ("grpo", [1, -1, -1, 1]),
        ("grpo_no_std", [0.5, -0.5, -0.5, 0.5]),
        ("dr_grpo", [0.5, -0.5, -0.5, 0.5]),
        ("reinforce_pp", [1, -1, -1, 1]),
        ("reinforce_pp_baseline", [1, -1, -1, 1]),
        ("raw", [1, 0, 0, 1]),
    ],
)
def test_advantages_by_name(name: str, expected: list[float]) -> None:
    buffer = make_buffer(loss_module=name, select="oldest")
    group = [made(str(n), episode_reward=reward) for n, reward in enumerate([1.0, 0.0, 0.0, 1.0])]
    buffer.add_batches([batch_of(group)])
    rows = buffer.sample_rollouts()
    assert rows is not None
    np.testing.assert_allclose([row.advantage for row in rows], expected, rtol=1e-6)


@pytest.mark.parametrize("change", [list, np.asarray, jnp.asarray])
def test_a_module_of_the_users_computes_advantages(change: Callable[[Any], Any]) -> None:
    module = Squares(change)
    buffer = make_buffer(loss_module=module, select="oldest", local_batch_size=2)
    group = [made("a", episode_reward=3.0), made("b", episode_reward=-2.0)]
    buffer.add_batches([batch_of(group)])
    rows = buffer.sample_rollouts()
    assert rows is not None and [row.advantage for row in rows] == [9.0, 4.0]
    assert module.seen[0] is group[0], "it sees what the environment made"


def test_a_batch_is_what_its_rollouts_would_make() -> None:
    rows_of, tensors_of = make_buffer(seed=5), make_buffer(seed=5)
    rewards = iter(range(100))
    batch = batch_of(
        *([made(f"{n}{k}", response=2 + n, episode_reward=next(rewards)) for k in range(3)] for n in range(5))
    )
    for buffer in (rows_of, tensors_of):
        buffer.add_batches([batch])
    for kwargs in ({}, {"pad_to_multiple": 8}, {"pad_to": 9, "padding_side": "left"}):
        rows = rows_of.sample_rollouts()
        tensors = tensors_of.sample_batch(6, 9, **kwargs)
        assert rows is not None and tensors is not None
        expected = create_training_batch_from_rollouts(rows, 6, 9, **kwargs)
        assert rollyard.digest(tensors) == rollyard.digest(expected)
        assert tensors.input_ids is tensors["input_ids"]


def test_old_tokens_leave_the_loss_and_old_rollouts_the_buffer() -> None:
    buffer = make_buffer(max_token_step_delay=2, local_batch_size=1, select="oldest")
    buffer.set_current_step(8)
    buffer.add_batches([batch_of([made("a", step=8, versions=[5, 6, 8])])])
    batch = buffer.sample_batch(8, 0)
    assert batch is not None and batch.loss_masks.tolist() == [[0, 0, 0, 1, 1]]
    buffer.set_current_step(10)
    batch = buffer.sample_batch(8, 0)
    assert batch is not None and batch.loss_masks.tolist() == [[0, 0, 0, 0, 1]]
    assert buffer.set_current_step(11) == 1, "none of its tokens could be trained on"
    assert buffer.get_stats()["dropped"] == {"stale_tokens": 1}


def test_statistics_have_marins_names_and_ours() -> None:
    buffer = make_buffer(max_samples=2, local_batch_size=2, select="oldest")
    buffer.set_current_step(5)
    buffer.add_batches([many(2, step=5, response=3), many(1, first=2, step=3, response=9)])
    for _ in range(2):
        buffer.sample_rollouts()
    stats = buffer.get_stats()
    expected = {
        "total_size": 1,
        "env_sizes": {"math": 1},
        "num_environments": 1,
        "total_batches_added": 2,
        "total_batches_sampled": 2,
        "current_step": 5,
        "added": 3,
        "sampled": 4,
        "retired": 2,
        "dropped": {},
        "groups": 3,
        "groups_without_variance": 3,
        "ages_steps": {2: 1},
        "lengths": {
            "math": {
                "generated": {"count": 3, "mean": 5.0, "boxes": {3: 2, 15: 1}},
                "trained": {"count": 4, "mean": 3.0, "boxes": {3: 4}},
            }
        },
    }
    assert stats == expected
