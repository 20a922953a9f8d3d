"""What a rollout worker does with what its environment returned.

An environment knows its tasks and nothing of weights, clocks or hosts. The worker stamps all that on the
rollouts afterwards, so that their age can be judged one by one.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from rollyard import _rollyard
from rollyard._rollyard import Rollout, RolloutMetadata
from rollyard.rollouts import RolloutBatch, RolloutGroup


def attach_metadata(
    groups: Iterable[Any],
    *,
    weight_step: int | Callable[[], int],
    worker_id: str | None = None,
    clock: Callable[[], float] = time.time,
) -> RolloutBatch:
    """The groups as one batch, every rollout with who made it, when, and with the weights of which step.

    A group is anything with `rollouts`, or just the rollouts; they may be another program's. Groups and
    rollouts may come from generators: a rollout is stamped with the time when it was taken from there, and
    `weight_step`, if it is a function, is asked then too, because weights may change while an environment
    runs. What a rollout says of itself is kept. `worker_id` is `{hostname}_{pid}` if left out. The batch has
    the stamp of its last rollout.
    """
    maker = f"{socket.gethostname()}_{os.getpid()}" if worker_id is None else worker_id

    def now() -> RolloutMetadata:
        step = weight_step() if callable(weight_step) else weight_step
        return RolloutMetadata(maker, clock(), step)

    stamped: list[RolloutGroup] = []
    last: RolloutMetadata | None = None
    for group in groups:
        rollouts: list[Rollout] = []
        for rollout in getattr(group, "rollouts", group):
            last = now()
            rollouts.append(_rollyard.stamp(rollout, last))
        stamped.append(RolloutGroup(rollouts))
    return RolloutBatch(stamped, now() if last is None else last)
