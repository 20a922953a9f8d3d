"""What is to be made: every instance so many times an epoch, less what is skipped and what is there.

The uid of a rollout follows from its place in the plan. So a generator that was killed asks which uids were
written, and goes on with the rest.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rollyard.generator.input import Instance

# The server is asked after so many uids at once.
BLOCK = 10_000


@dataclass(slots=True)
class Job:
    """One rollout to make."""

    instance: Instance
    epoch: int
    repeat: int
    # Worker processes that died of it.
    deaths: int = field(default=0, compare=False)

    @property
    def uid(self) -> str:
        return f"{self.instance.id}:{self.epoch}:{self.repeat}"


class Skips:
    """Instances to leave out: each mention of one skips it, with all its repeats, in one more epoch."""

    def __init__(self, instance_ids: Iterable[object] | None) -> None:
        self._epochs = Counter(str(name) for name in instance_ids or ())

    def __contains__(self, where: tuple[Instance, int]) -> bool:
        instance, epoch = where
        return epoch < self._epochs[instance.id]


def jobs_of(instances: Sequence[Instance], epoch: int, repeats: int, skips: Skips) -> Iterator[Job]:
    """The jobs of an epoch: in an order of its own, the same each time, the repeats of an instance together.

    Together, so that the members of a group are sampled at about the same time.
    """
    order = list(instances)
    random.Random(epoch).shuffle(order)
    for instance in order:
        if (instance, epoch) not in skips:
            yield from (Job(instance, epoch, repeat) for repeat in range(repeats))


def without_known(
    jobs: Iterable[Job], known: Callable[[list[str]], set[str]], count: Callable[[int], object]
) -> Iterator[Job]:
    """The jobs whose rollouts are not written yet; `count` is told how many were."""
    jobs = iter(jobs)
    while block := list(itertools.islice(jobs, BLOCK)):
        there = known([job.uid for job in block])
        count(len(there))
        yield from (job for job in block if job.uid not in there)
