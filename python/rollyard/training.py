"""Rollouts with their advantages as the batch a trainer reads, under marin's names.

`training_batch` in `rollyard.tensors` does the work; these take what a replay buffer gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollyard import _rollyard
from rollyard._rollyard import RolloutWithAdvantage
from rollyard.errors import BatchError
from rollyard.tensors import Side, training_batch


class TrainingBatch(dict[str, Any]):
    """Arrays by name, whose first dimension is the rows: `batch["input_ids"]` is `batch.input_ids`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            keys = ", ".join(self)
            raise AttributeError(f"a training batch has no {name!r}; it has {keys}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def create_training_batch_from_rollouts(
    individual_rollouts: Sequence[RolloutWithAdvantage],
    max_tokens: int,
    pad_token_id: int,
    pad_to_multiple: int | None = None,
    *,
    pad_to: int | None = None,
    padding_side: Side = "right",
    oldest_version: int | None = None,
) -> TrainingBatch:
    """Rollouts as rows of prompt and response, trimmed to `max_tokens` and padded to the longest of them.

    `pad_to_multiple` rounds the width up. Anything with a `rollout` and an `advantage` is taken, and the
    rollout may be another program's. Nothing to make a batch of, or a row that would train nothing, is a
    `BatchError`, which is a `ValueError`.
    """
    tensors = training_batch(
        [_rollyard.rollout_of(individual.rollout) for individual in individual_rollouts],
        [individual.advantage for individual in individual_rollouts],
        max_tokens=max_tokens,
        pad_token_id=pad_token_id,
        # 0 means no multiple in marin.
        pad_to_multiple=pad_to_multiple or None,
        pad_to=pad_to,
        padding_side=padding_side,
        oldest_version=oldest_version,
    )
    return TrainingBatch(tensors)


def trim_and_pad(
    ary: npt.ArrayLike,
    max_seq_len: int,
    pad_to: int | None = None,
    padding_value: int | float = 0,
) -> npt.NDArray[Any]:
    """The first `max_seq_len` values, padded on the right to `pad_to`, by default to `max_seq_len`."""
    kept = np.asarray(ary)[:max_seq_len]
    width = max_seq_len if pad_to is None else pad_to
    if width < len(kept):
        raise BatchError(
            f"pad_to is {width}, but {len(kept)} values are left after trimming to {max_seq_len}"
        )
    return np.pad(kept, (0, width - len(kept)), constant_values=padding_value)
