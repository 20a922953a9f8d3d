"""A replay buffer as one would write it with Python and numpy: the baseline of `benches/python/replay.py`.

Entries are data classes in a list for each environment. Sampling makes the weights of every entry, adding
compares each group with numpy, a new step filters the lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(slots=True)
class Metadata:
    worker_id: str = ""
    timestamp: float = 0.0
    weight_step: int = -1


@dataclass(slots=True)
class Rollout:
    """Holds the arrays it is given; nothing is copied or checked."""

    env_name: str
    env_example_id: str
    prompt_tokens: np.ndarray
    response_tokens: np.ndarray
    response_logprobs: np.ndarray
    token_rewards: np.ndarray
    episode_reward: float
    metadata: Metadata = field(default_factory=Metadata)


@dataclass(slots=True)
class Entry:
    rollout: Any
    advantage: float
    weight_step: int
    usage_count: int = 0


class NumpyReplay:
    def __init__(
        self, *, capacity: int, alpha: float, batch_size: int, max_step_delay: int, seed: int
    ) -> None:
        self.capacity = capacity
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_step_delay = max_step_delay
        self.step = 0
        self.envs: dict[str, list[Entry]] = {}
        self.rng = np.random.default_rng(seed)

    def add(self, groups: Iterable[list[Any]]) -> None:
        oldest = self.step - self.max_step_delay
        for group in groups:
            rewards = np.array([rollout.episode_reward for rollout in group])
            # Each against the mean of the others.
            advantages = (rewards - rewards.mean()) * len(group) / max(len(group) - 1, 1)
            for rollout, advantage in zip(group, advantages.tolist(), strict=True):
                step = rollout.metadata.weight_step
                if oldest <= step <= self.step:
                    self.envs.setdefault(rollout.env_name, []).append(Entry(rollout, advantage, step))
        for env, entries in self.envs.items():
            if len(entries) > self.capacity:
                self.envs[env] = entries[-self.capacity :]

    def set_step(self, step: int) -> None:
        self.step = step
        oldest = step - self.max_step_delay
        for env, entries in self.envs.items():
            self.envs[env] = [entry for entry in entries if entry.weight_step >= oldest]

    def sample(self) -> list[Entry] | None:
        sizes = np.array([len(entries) for entries in self.envs.values()])
        if sizes.sum() < self.batch_size:
            return None
        counts = self.rng.multivariate_hypergeometric(sizes, self.batch_size)
        batch: list[Entry] = []
        for entries, count in zip(self.envs.values(), counts, strict=True):
            weights = np.arange(1, len(entries) + 1) ** self.alpha
            picks = self.rng.choice(len(entries), size=count, replace=False, p=weights / weights.sum())
            batch.extend(entries[pick] for pick in picks)
        for entry in batch:
            entry.usage_count += 1
        return batch
