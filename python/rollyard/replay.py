"""A replay buffer in this process: fresh rollouts, fairly picked.

`ReplayBuffer` has marin's names and signatures, so that a program changes an import. The rules are in Rust
(`rollyard_core::replay`): what is kept, when it is stale, how it is picked and what it is worth.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from rollyard import _rollyard
from rollyard._rollyard import RolloutWithCount
from rollyard.limiters import MinSize, Queue, SampleToInsertRatio
from rollyard.tensors import Side, _dict, _layout
from rollyard.training import TrainingBatch

Select = Literal["recency", "uniform", "oldest", "newest", "prioritised"]
Balance = Literal["proportional", "equal"]
Limiter = SampleToInsertRatio | MinSize | Queue


@dataclass(frozen=True)
class ReplayBufferConfig:
    """What a buffer keeps, for how long, and how it picks. Negative is no limit."""

    capacity: int
    """Rollouts of one environment; the oldest make room."""

    alpha: float
    """The i-th oldest rollout weighs i to this power: 0 is uniform, 3 prefers the new."""

    max_samples: int
    """Times a rollout is used before it retires."""

    max_rollout_step_delay: int
    """Steps that the trainer may be ahead of the weights that sampled a rollout."""

    max_rollout_timestamp_delay: float = 3600.0
    """Seconds since a rollout was made."""

    filter_out_groups_with_no_variance: bool = False
    """Groups whose rewards are all equal are dropped; they are counted either way."""

    select: Select = field(default="recency", kw_only=True)
    """Which rollouts of an environment are picked. `prioritised` goes by the size of the advantage."""

    balance: Balance = field(default="proportional", kw_only=True)
    """How a batch is shared among environments: by their sizes, or as many of each as there are."""

    max_token_step_delay: int = field(default=-1, kw_only=True)
    """Steps that the trainer may be ahead of the weights that sampled a token; older ones leave the loss."""

    limiter: Limiter | None = field(default=None, kw_only=True)
    """Keeps adding and sampling in step."""


class ReplayBuffer:
    """Groups of rollouts in, batches for a trainer out. Many threads may use it at once.

    A rollout is fresh if it was sampled with weights that are no more than `max_rollout_step_delay` steps
    behind and not ahead of the trainer, and made less than `max_rollout_timestamp_delay` seconds ago. That is
    looked at when it is added, when the step changes, and when a batch is sampled.

    Processes that make the same calls with the same seed draw the same global batch, of which each gets its
    own `local_batch_size` rows. `loss_module` is the name of an advantage (`rloo`, `grpo`, `grpo_no_std`,
    `dr_grpo`, `reinforce_pp`, `reinforce_pp_baseline`, `raw`) or an object with
    `compute_advantages(rollouts)`, which is called with the rollouts of each group as they were given.
    """

    def __init__(
        self,
        capacity: int,
        local_batch_size: int,
        alpha: float,
        total_processes: int,
        max_samples: int,
        max_rollout_step_delay: int,
        max_rollout_timestamp_delay: float = 3600.0,
        filter_out_groups_with_no_variance: bool = False,
        loss_module: Any = "rloo",
        seed: int = 0,
        *,
        process_id: int = 0,
        select: Select = "recency",
        balance: Balance = "proportional",
        max_token_step_delay: int = -1,
        limiter: Limiter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        named = isinstance(loss_module, str)
        if not named and not callable(getattr(loss_module, "compute_advantages", None)):
            kind = type(loss_module).__name__
            raise TypeError(f"loss_module is a {kind}; give a name, or an object with compute_advantages")
        self._loss_module = None if named else loss_module
        self._clock = clock
        self._native = _rollyard.Replay(
            {
                "capacity": capacity,
                "local_batch_size": local_batch_size,
                "total_processes": total_processes,
                "process_id": process_id,
                "alpha": alpha,
                "max_samples": max_samples,
                "max_rollout_step_delay": max_rollout_step_delay,
                "max_rollout_timestamp_delay": max_rollout_timestamp_delay,
                "max_token_step_delay": max_token_step_delay,
                "filter_out_groups_with_no_variance": filter_out_groups_with_no_variance,
                # What a module of the caller's says is taken as it is.
                "advantage": loss_module if named else "raw",
                "select": select,
                "balance": balance,
                "limiter": limiter,
                "seed": seed,
            }
        )
        _buffers.add(self)

    @classmethod
    def from_config(
        cls,
        config: ReplayBufferConfig,
        local_batch_size: int,
        total_processes: int,
        loss_module: Any = "rloo",
        seed: int = 0,
        *,
        process_id: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> ReplayBuffer:
        """The buffer that `config` describes, for this process."""
        return cls(
            local_batch_size=local_batch_size,
            total_processes=total_processes,
            loss_module=loss_module,
            seed=seed,
            process_id=process_id,
            clock=clock,
            **vars(config),
        )

    def set_current_step(self, step: int) -> int:
        """The trainer is at `step` now. Gives how many rollouts became too old by it.

        A step before the current one is a `ReplayError`: `rewind` goes back.
        """
        return self._native.set_step(step, self._clock())

    def rewind(self, step: int) -> int:
        """The trainer began again at `step`: drops what was sampled with weights that are no more.

        How often the others were used stays as it is. Gives how many were dropped.
        """
        return self._native.rewind(step, self._clock())

    def add_batches(self, new_batches: Iterable[Any], *, timeout: float = 0.0) -> int:
        """Adds all rollouts of the batches, or none of them if anything is wrong. Gives how many were kept.

        Batches, groups and rollouts may be ours or any objects with the same attributes. A rollout without
        metadata takes its batch's. If the limiter holds them back, this waits up to `timeout` seconds for
        samples to be taken, and then raises `PacedError`.
        """
        return self._native.add(new_batches, self._loss_module, self._clock, timeout)

    def sample_rollouts(self) -> list[RolloutWithCount] | None:
        """This process's rows of the next batch, or `None` if there are too few or the limiter says to wait.

        If every environment is full and still too few are there, that is a `ReplayError`.
        """
        return self._native.sample(self._clock())

    def sample_batch(
        self,
        max_tokens: int,
        pad_token_id: int,
        *,
        pad_to_multiple: int | None = None,
        pad_to: int | None = None,
        padding_side: Side = "right",
    ) -> TrainingBatch | None:
        """The same as tensors, as `create_training_batch_from_rollouts` would make them.

        Tokens sampled with weights more than `max_token_step_delay` steps behind are not in the loss. If a
        row would train nothing, that is a `BatchError`; the rows count as used nevertheless.
        """
        layout = _layout(max_tokens, pad_token_id, pad_to_multiple, pad_to, padding_side)
        made = self._native.sample_batch(self._clock(), layout)
        return None if made is None else TrainingBatch(_dict(made))

    def size(self) -> int:
        """Rollouts that could be sampled, as of the last call."""
        return self._native.size()

    def get_stats(self) -> dict[str, Any]:
        """Sizes, counts, ages, and the lengths of what was generated beside what was trained on."""
        return self._native.stats()

    def __len__(self) -> int:
        return self._native.size()

    def __bool__(self) -> bool:
        """A buffer is one even while it is empty."""
        return True

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ReplayBuffer is not pickled: make one in each process, from a ReplayBufferConfig")


_buffers: weakref.WeakSet[ReplayBuffer] = weakref.WeakSet()


def _after_fork() -> None:
    for buffer in _buffers:
        buffer._native.after_fork()


# A lock that another thread held when the process was forked is never given back in the child.
os.register_at_fork(after_in_child=_after_fork)
