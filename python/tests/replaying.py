"""Replay buffers and what goes into them, as several tests need them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np

from rollyard import ReplayBuffer, Rollout, RolloutBatch, RolloutGroup, RolloutMetadata, RolloutWithCount
from samples import make_rollout

NOW = 1_000_000.0


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def make_buffer(**changes: Any) -> ReplayBuffer:
    """A buffer that keeps everything, unless a test says otherwise."""
    knobs: dict[str, Any] = {
        "capacity": 1000,
        "local_batch_size": 4,
        "alpha": 3.0,
        "total_processes": 1,
        "max_samples": -1,
        "max_rollout_step_delay": 100,
        "max_rollout_timestamp_delay": 3600.0,
        "clock": lambda: NOW,
    }
    return ReplayBuffer(**(knobs | changes))


def made(name: str, *, env: str = "math", step: int = 0, at: float = NOW, **fields: Any) -> Rollout:
    metadata = RolloutMetadata("host_1", at, step)
    return make_rollout(name, env_name=env, metadata=metadata, **fields)


def batch_of(*groups: list[Rollout]) -> RolloutBatch:
    return RolloutBatch([RolloutGroup(group) for group in groups])


def many(count: int, *, first: int = 0, **fields: Any) -> RolloutBatch:
    """One rollout a group, named by their numbers."""
    return batch_of(*([made(str(n), **fields)] for n in range(first, first + count)))


def names(rows: list[RolloutWithCount] | None) -> list[str]:
    assert rows is not None
    return [row.rollout.env_example_id for row in rows]


class Squares:
    """A loss module of a user."""

    def __init__(self, change: Callable[[Any], Any] = np.asarray) -> None:
        self.seen: list[Any] = []
        self.change = change

    def compute_advantages(self, rollouts: list[Any]) -> Any:
        self.seen.extend(rollouts)
        return self.change([rollout.episode_reward**2 for rollout in rollouts])


def foreign_batch(*, metadata: Any = "rollout") -> SimpleNamespace:
    """A batch of another program; its metadata is with the rollouts, with the batch, or nowhere."""
    stamp = SimpleNamespace(worker_id="host_2", timestamp=NOW, weight_step=3)
    fields: dict[str, Any] = {
        "env_name": "math",
        "env_example_id": "f",
        "prompt_tokens": np.array([1, 2], dtype=np.int64),
        "response_tokens": jnp.array([3, 4]),
        "response_logprobs": [-0.5, -0.25],
        "token_rewards": np.zeros(2),
        "episode_reward": jnp.float32(1.0),
        "is_truncated": np.True_,
    }
    if metadata == "rollout":
        fields["metadata"] = stamp
    group = SimpleNamespace(rollouts=(SimpleNamespace(**fields), SimpleNamespace(**fields)))
    return SimpleNamespace(groups=[group], metadata=stamp if metadata == "batch" else None)
