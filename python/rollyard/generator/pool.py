"""Worker processes, made when there is work for them and replaced when they die.

Their functions are the user's, and may crash the process, leak, or hang in C. So each worker has a pipe of
its own and one job at a time: when it dies, exactly one job is known to have been in its hands.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import selectors
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, TypeAlias

from rollyard.generator.plan import Job
from rollyard.generator.worker import Craft, Made, Note, Task, work

# How long workers have to leave by themselves when all is done.
LEAVE_SECS = 5.0
# Open files for each worker, and for everything else.
FILES_EACH = 3
FILES_BESIDES = 256


@dataclass(frozen=True, slots=True)
class Died:
    """A worker ended in the middle of a job."""

    how: str


Event: TypeAlias = tuple[Job | None, Made | Died | Note]


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    # Becomes readable when the process has ended, even if a child of it still holds the pipe.
    ending: int
    job: Job | None = None

    @property
    def files(self) -> set[int]:
        return {self.pipe.fileno(), self.ending, self.process.sentinel}


class Pool:
    """At most `size` workers. Used by one thread; leaving it ends them all."""

    def __init__(self, size: int, craft: Craft) -> None:
        methods = multiprocessing.get_all_start_methods()
        # A fork takes milliseconds, and needs no function to be importable.
        self._forks = "fork" in methods
        self._context: Any = multiprocessing.get_context("fork" if self._forks else "spawn")
        self._size = size
        self._craft = craft
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        _allow_files(FILES_EACH * size + FILES_BESIDES)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for worker in self._workers:
            # An idle worker leaves when its pipe closes, and may put its own things in order.
            worker.pipe.close()
            if error is not None:
                worker.process.kill()
        deadline = time.monotonic() + LEAVE_SECS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            _bury(worker)

    @property
    def has_room(self) -> bool:
        return bool(self._idle) or len(self._workers) < self._size

    @property
    def is_idle(self) -> bool:
        return len(self._idle) == len(self._workers)

    def give(self, job: Job, task: Task) -> None:
        """Hands a job to a worker that has none; there must be room."""
        while self._idle:
            worker = self._idle.pop()
            with contextlib.suppress(OSError):
                worker.pipe.send(task)
                worker.job = job
                return
            # It died while it was idle, which is no fault of the job.
            self._remove(worker)
        worker = self._start()
        worker.job = job
        # One that dies before it can be given anything is seen by `wait`, and counts.
        with contextlib.suppress(OSError):
            worker.pipe.send(task)

    def wait(self, *, block: bool) -> list[Event]:
        """What has happened; waits for something if it is to block."""
        ready = self._selector.select(None if block else 0)
        workers = {key.data for key, _ in ready}
        return [event for worker in workers for event in self._look(worker)]

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        # What a fork takes along of the other workers; a spawned process inherits nothing.
        foreign = [ours.fileno(), *(file for worker in self._workers for file in worker.files)]
        foreign = foreign if self._forks else []
        process = self._context.Process(
            target=work, args=(theirs, foreign, os.getpid(), self._craft), name="rollyard generator"
        )
        process.start()
        # Now only the worker has this end, so that the pipe closes when it dies.
        theirs.close()
        worker = _Worker(process, ours, _ending(process))
        self._workers.add(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        self._selector.register(worker.ending, selectors.EVENT_READ, worker)
        return worker

    def _look(self, worker: _Worker) -> Iterator[Event]:
        alive = worker.process.is_alive()
        try:
            # What it said before it died still counts.
            while worker.pipe.poll():
                said = worker.pipe.recv()
                job = worker.job
                if isinstance(said, Made):
                    worker.job = None
                    self._idle.append(worker)
                yield job, said
        except (EOFError, OSError):
            alive = False
        if not alive:
            job = worker.job
            how = self._remove(worker)
            if job is not None:
                yield job, Died(how)

    def _remove(self, worker: _Worker) -> str:
        """Takes a dead worker out; how it ended."""
        self._workers.discard(worker)
        with contextlib.suppress(ValueError):
            self._idle.remove(worker)
        self._selector.unregister(worker.pipe)
        self._selector.unregister(worker.ending)
        worker.pipe.close()
        # Its pipe may have closed a moment before its end.
        worker.process.join(1.0)
        return _bury(worker)


def _bury(worker: _Worker) -> str:
    """Ends a worker that has not ended, and says how it did."""
    worker.process.kill()
    worker.process.join()
    code = worker.process.exitcode or 0
    if worker.ending != worker.process.sentinel:
        os.close(worker.ending)
    worker.process.close()
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by the signal {-code}"


def _allow_files(count: int) -> None:
    """Lifts this process's own limit of open files, which is 1024 in most places, as far as it may."""
    try:
        import resource
    except ImportError:
        # Not here; nor is there such a limit then.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _ending(process: BaseProcess) -> int:
    assert process.pid is not None, "it was started"
    pidfd_open = getattr(os, "pidfd_open", None)
    try:
        return process.sentinel if pidfd_open is None else int(pidfd_open(process.pid))
    except OSError:
        # An old kernel.
        return process.sentinel
