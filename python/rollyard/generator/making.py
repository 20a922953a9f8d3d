"""The work of a generator: hands out jobs to workers, and writes what comes back."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollyard.client.blocking import Client
from rollyard.client.encode import Line
from rollyard.generator.input import DataSet
from rollyard.generator.plan import Job, Skips, jobs_of, without_known
from rollyard.generator.pool import Died, Pool
from rollyard.generator.progress import Progress
from rollyard.generator.worker import Craft, Made, Note, Task, failed_item
from rollyard.generator.yard import YardWriter

# Worker processes that may die of one rollout.
DEATHS_MAX = 3
# Jobs handed out before looking at what came back: starting a thousand workers takes seconds.
GIVEN_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rollouts are to be made."""

    epochs: Sequence[int]
    repeats: int
    skips: Skips

    def jobs(self, data: DataSet) -> Iterator[Job]:
        each = (jobs_of(data.instances, epoch, self.repeats, self.skips) for epoch in self.epochs)
        return itertools.chain.from_iterable(each)

    def count(self, data: DataSet) -> int:
        places = itertools.product(data.instances, self.epochs)
        return self.repeats * sum(place not in self.skips for place in places)


class Making:
    """One go at all of a scope. Nothing is kept here that a second go would need."""

    def __init__(self, client: Client, data: DataSet, scope: Scope, craft: Craft) -> None:
        self._data = data
        self._craft = craft
        self._progress = Progress(scope.count(data))
        self._yard = YardWriter(client, self._progress.say)
        self._jobs = without_known(scope.jobs(data), self._yard.known, self._count_known)
        self._again: deque[Job] = deque()

    def run(self, pool: Pool) -> Progress:
        """Returns when every rollout was written or refused."""
        planned = True
        while planned or self._again or not pool.is_idle:
            planned = self._hand_out(pool)
            # New jobs go first, so that workers have something to do while their last rollouts are written.
            more = pool.has_room and (planned or bool(self._again))
            events = pool.wait(block=not more and not pool.is_idle)
            self._write([line for event in events for line in self._take(*event)])
            self._progress.show()
        self._progress.show(last=True)
        return self._progress

    def _hand_out(self, pool: Pool) -> bool:
        """Gives out some jobs; whether the plan may have more."""
        for _ in range(GIVEN_AT_ONCE):
            if not pool.has_room:
                return True
            job = self._again.popleft() if self._again else next(self._jobs, None)
            if job is None:
                return False
            pool.give(job, self._task(job))
        return True

    def _take(self, job: Job | None, event: Made | Died | Note) -> Iterator[Line]:
        """What is to be written after an event."""
        if isinstance(event, Note):
            self._progress.say(event.text)
            return
        assert job is not None, "only a note comes without a job"
        made = self._after_death(job, event) if isinstance(event, Died) else event
        if made is None:
            return
        if made.failure is not None:
            self._progress.failed += 1
            self._progress.say(f"the rollout {job.uid!r} failed: {made.failure}", topic="failed")
        yield Line(0, job.uid, made.content)

    def _after_death(self, job: Job, death: Died) -> Made | None:
        """The failure to write, if the job has killed its last worker."""
        job.deaths += 1
        if job.deaths < DEATHS_MAX:
            self._progress.say(f"a worker {death.how} at the rollout {job.uid!r}, which is tried again")
            self._again.append(job)
            return None
        failure = f"{job.deaths} worker processes died of it; the last {death.how}"
        return Made(failed_item(self._task(job), self._craft.sampling_params, failure), failure)

    def _write(self, lines: list[Line]) -> None:
        if not lines:
            return
        refused = self._yard.write(lines)
        for one in refused:
            self._progress.say(f"the rollout {one.uid!r} is refused: {one.message}")
        self._progress.refused += len(refused)
        self._progress.written += len(lines) - len(refused)

    def _task(self, job: Job) -> Task:
        return Task(self._data.line(job.instance), job.uid, job.epoch, job.repeat)

    def _count_known(self, count: int) -> None:
        self._progress.known += count
