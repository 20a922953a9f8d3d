"""Feeds a replay buffer from a reader, in the background, and hands out batches as soon as there are any."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from rollyard._rollyard import RolloutWithCount
from rollyard.errors import PacedError, ReplayError
from rollyard.replay import ReplayBuffer
from rollyard.tensors import Side
from rollyard.training import TrainingBatch

_log = logging.getLogger("rollyard")
_Drawn = TypeVar("_Drawn")


class Reader(Protocol):
    """Where batches come from; those of `rollyard.storage` do."""

    def read_all_available(self) -> list[Any]:
        """What has come since the last call, without waiting."""


class ReplayDataLoader:
    """Reads every `rollout_fetch_interval` seconds what `rollout_reader` has, and adds it to the buffer.

    It runs from `start` to `stop`, or as long as a `with` block. Whoever waits for a batch is woken by what
    is added, by this loader or by anyone else. While the limiter of the buffer says no, nothing more is read.

    Trouble does not end it: a reader that fails is asked again, a batch that cannot be added is left out and
    the others are added. Each trouble is counted in `problems_total`, and one of each kind is logged. The
    last one is kept in `problem`. A getter gives a batch in spite of it; if none comes in time, it raises the
    problem instead of returning `None`. A problem that was raised, or that was followed by a batch that could
    be added, is forgotten; one that lasts comes up again with the next attempt.
    """

    def __init__(
        self, rollout_reader: Reader, replay_buffer: ReplayBuffer, rollout_fetch_interval: float = 1.0
    ) -> None:
        self.rollout_reader = rollout_reader
        self.replay_buffer = replay_buffer
        self.rollout_fetch_interval = rollout_fetch_interval
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._logged: set[type[Exception]] = set()
        # Read and not added yet; what is left here when the loader stops is the first when it starts again.
        self._pending: deque[Any] = deque()
        self.problem: Exception | None = None
        self.problems_total = 0

    def start(self) -> None:
        """Begins to read. Started twice, it goes on as before."""
        if self._thread is not None and self._process == os.getpid():
            return
        self._process = os.getpid()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rollyard-loader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the reading, after the call of the reader that may be under way."""
        thread, self._thread = self._thread, None
        if thread is None or self._process != os.getpid():
            return
        self._stopping.set()
        self.replay_buffer._native.wake()
        thread.join()

    def __enter__(self) -> ReplayDataLoader:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def get_rollouts(self, timeout: float = 5.0) -> list[RolloutWithCount] | None:
        """The next batch, waiting up to `timeout` seconds for it; `None` if there is none by then."""
        return self._wait_for(self.replay_buffer.sample_rollouts, timeout)

    def get_batch(
        self,
        timeout: float = 5.0,
        *,
        max_tokens: int,
        pad_token_id: int,
        pad_to_multiple: int | None = None,
        pad_to: int | None = None,
        padding_side: Side = "right",
    ) -> TrainingBatch | None:
        """The same as tensors; see `ReplayBuffer.sample_batch`."""

        def draw() -> TrainingBatch | None:
            return self.replay_buffer.sample_batch(
                max_tokens,
                pad_token_id,
                pad_to_multiple=pad_to_multiple,
                pad_to=pad_to,
                padding_side=padding_side,
            )

        return self._wait_for(draw, timeout)

    def _wait_for(self, draw: Callable[[], _Drawn | None], timeout: float) -> _Drawn | None:
        if self._thread is None or self._process != os.getpid():
            raise ReplayError("the loader does not run in this process; start it, or use a with block")
        deadline = time.monotonic() + timeout
        seen = self.replay_buffer._native.wait(-1, 0.0)
        while (drawn := draw()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                problem, self.problem = self.problem, None
                if problem is not None:
                    raise problem
                return None
            seen = self.replay_buffer._native.wait(seen, left)
        return drawn

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._add_pending()
            try:
                self._pending.extend(self.rollout_reader.read_all_available())
            except Exception as error:
                self._note(error)
            self._add_pending()
            self._stopping.wait(self.rollout_fetch_interval)

    def _add_pending(self) -> None:
        """Adds batch by batch, each as soon as the limiter lets it through."""
        while self._pending and not self._stopping.is_set():
            seen = self.replay_buffer._native.wait(-1, 0.0)
            try:
                self.replay_buffer.add_batches([self._pending[0]])
            except PacedError:
                self.replay_buffer._native.wait(seen, self.rollout_fetch_interval)
                continue
            except Exception as error:
                self._note(error)
            else:
                self.problem = None
            self._pending.popleft()

    def _note(self, error: Exception) -> None:
        self.problems_total += 1
        self.problem = error
        if type(error) not in self._logged:
            self._logged.add(type(error))
            _log.error("loading rollouts failed: %s: %s", type(error).__name__, error)
