"""Rollout batches handed over as files or through memory, with marin's names.

`RolloutStorageConfig` makes a writer for the workers and a reader for the trainer. Files are Arrow streams
on a disk or on S3: they run nothing when they are read, a damaged row is found by its digest, and what could
not be read is reported instead of raised.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from enum import Enum

from rollyard._rollyard import FolderReader, FolderWriter, Rollout, RolloutMetadata
from rollyard.rollouts import RolloutBatch, RolloutGroup

logger = logging.getLogger("rollyard")

_FIRST_POLL_SECS = 0.005
_LAST_POLL_SECS = 0.25


class StorageType(Enum):
    """Where rollout batches are kept."""

    FILE = "file"
    IN_MEMORY = "in_memory"


@dataclass
class RolloutStorageConfig:
    """Where rollout batches go from workers to the trainer."""

    storage_type: StorageType | str
    path: str | os.PathLike[str] | None = None
    max_rollout_files: int = 32
    queue_name: str | None = None
    queue_maxlen: int | None = 4

    def __post_init__(self) -> None:
        self.storage_type = StorageType(self.storage_type)

    def create_reader(self) -> RolloutReader:
        if StorageType(self.storage_type) is StorageType.FILE:
            return FileRolloutReader(self._path())
        return self._queue().reader()

    def create_writer(self) -> RolloutWriter:
        if StorageType(self.storage_type) is StorageType.FILE:
            return FileRolloutWriter(self._path(), self.max_rollout_files)
        return self._queue().writer()

    def _path(self) -> str | os.PathLike[str]:
        if self.path is None:
            raise ValueError("path is None, but file storage needs one: a folder or s3://bucket/prefix")
        return self.path

    def _queue(self) -> InMemoryRolloutQueue:
        if self.queue_name is None:
            raise ValueError("queue_name is None, but storage in memory needs one: any text")
        return _named_queue(self.queue_name, self.queue_maxlen)


class RolloutReader(ABC):
    """Gives rollout batches, each once."""

    @abstractmethod
    def read_batch(self, timeout: float | None = None) -> RolloutBatch | None:
        """The next batch, or None if none comes within `timeout` seconds; None means not to wait."""

    @abstractmethod
    def read_all_available(self) -> list[RolloutBatch]:
        """All batches that are there now."""


class RolloutWriter(ABC):
    """Takes rollout batches."""

    @abstractmethod
    def write_batch(self, batch: RolloutBatch) -> None:
        """Returns when the batch can be read."""


class FileRolloutReader(RolloutReader):
    """Reads the batches of a folder, oldest first.

    A file that vanished, or is damaged in whole or in part, is skipped and reported in `problems`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._folder = FolderReader(self.path)

    def read_batch(self, timeout: float | None = None) -> RolloutBatch | None:
        deadline = time.monotonic() + (timeout or 0.0)
        poll_secs = _FIRST_POLL_SECS
        while True:
            read, problems = self._folder.read_next()
            self._log(problems)
            if read is not None:
                return _batch(*read)
            left_secs = deadline - time.monotonic()
            if left_secs <= 0:
                return None
            time.sleep(min(poll_secs, left_secs))
            poll_secs = min(2 * poll_secs, _LAST_POLL_SECS)

    def read_all_available(self) -> list[RolloutBatch]:
        batches, problems = self._folder.read_all()
        self._log(problems)
        return [_batch(*read) for read in batches]

    @property
    def problems(self) -> list[tuple[str, str]]:
        """The last thousand files or rows that could not be read: the file's name, and why."""
        return self._folder.problems

    @property
    def problems_total(self) -> int:
        """How many there were in all."""
        return self._folder.problems_total

    def _log(self, problems: list[tuple[str, str]]) -> None:
        for name, why in problems:
            logger.error("rollouts not read from %s/%s: %s", self.path, name, why)


class FileRolloutWriter(RolloutWriter):
    """Writes batches as files into a folder, and deletes the oldest files above `max_rollout_files`.

    The bound is on the folder: files of other writers, and of earlier ones, count.
    """

    def __init__(self, path: str | os.PathLike[str], max_rollout_files: int = 32) -> None:
        self.path = os.fspath(path)
        self.max_rollout_files = max_rollout_files
        self._folder = FolderWriter(self.path, max_rollout_files)
        self._metrics = dict.fromkeys(
            (
                "rollout_storage/last_serialize_time",
                "rollout_storage/last_write_time",
                "rollout_storage/last_total_time",
                "rollout_storage/last_size_bytes",
                "rollout_storage/cumulative_write_time",
                "rollout_storage/cumulative_batch_count",
            ),
            0.0,
        )

    def write_batch(self, batch: RolloutBatch) -> None:
        """Returns when the file is durable. A group without rollouts leaves no trace in it."""
        begun = time.monotonic()
        groups = [group.rollouts for group in batch.groups]
        name, size_bytes, encode_secs, publish_secs, undeleted = self._folder.write(groups, batch.metadata)
        if undeleted is not None:
            logger.error("old rollouts not deleted after %s/%s: %s", self.path, name, undeleted)
        metrics = self._metrics
        self._metrics = {
            "rollout_storage/last_serialize_time": encode_secs,
            "rollout_storage/last_write_time": publish_secs,
            "rollout_storage/last_total_time": time.monotonic() - begun,
            "rollout_storage/last_size_bytes": float(size_bytes),
            "rollout_storage/cumulative_write_time": metrics["rollout_storage/cumulative_write_time"]
            + publish_secs,
            "rollout_storage/cumulative_batch_count": metrics["rollout_storage/cumulative_batch_count"] + 1,
        }

    def get_metrics(self) -> dict[str, float]:
        """Seconds, bytes and counts of the last write and of all, by marin's names."""
        return dict(self._metrics)

    def clear_queue(self) -> None:
        """Deletes all rollouts in the folder, and nothing else that may be there."""
        self._folder.clear()


class InMemoryRolloutQueue:
    """Batches in the memory of this process, first in, first out."""

    def __init__(self, maxlen: int | None = None) -> None:
        if maxlen is not None and maxlen < 1:
            raise ValueError(f"maxlen is {maxlen}, but must be at least 1, or None for no bound")
        self._maxlen = maxlen
        self._batches: deque[RolloutBatch] = deque()
        self._changed = threading.Condition()

    def push(self, batch: RolloutBatch) -> None:
        """Adds a batch, when there is room for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._maxlen is None or len(self._batches) < self._maxlen)
            self._batches.append(batch)
            self._changed.notify_all()

    def pop(self, timeout: float | None = None) -> RolloutBatch | None:
        """Takes the oldest batch, or None if none comes within `timeout` seconds; None means not to wait."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._batches, max(timeout or 0.0, 0.0)):
                return None
            batch = self._batches.popleft()
            self._changed.notify_all()
            return batch

    def pop_all(self) -> list[RolloutBatch]:
        """Takes all batches that are there now."""
        with self._changed:
            batches = list(self._batches)
            self._batches.clear()
            self._changed.notify_all()
            return batches

    def reader(self) -> InMemoryRolloutReader:
        return InMemoryRolloutReader(self)

    def writer(self) -> InMemoryRolloutWriter:
        return InMemoryRolloutWriter(self)

    def clear_queue(self) -> None:
        """Drops all batches, and lets those in who wait for room."""
        self.pop_all()


class InMemoryRolloutReader(RolloutReader):
    """Takes batches from a queue."""

    def __init__(self, queue: InMemoryRolloutQueue) -> None:
        self._queue = queue

    def read_batch(self, timeout: float | None = None) -> RolloutBatch | None:
        return self._queue.pop(timeout)

    def read_all_available(self) -> list[RolloutBatch]:
        return self._queue.pop_all()


class InMemoryRolloutWriter(RolloutWriter):
    """Puts batches into a queue."""

    def __init__(self, queue: InMemoryRolloutQueue) -> None:
        self._queue = queue

    def write_batch(self, batch: RolloutBatch) -> None:
        self._queue.push(batch)


_queues: dict[str, InMemoryRolloutQueue] = {}
_queues_lock = threading.Lock()


def _named_queue(name: str, maxlen: int | None) -> InMemoryRolloutQueue:
    """The queue of that name in this process; whoever asks first says how long it may get."""
    with _queues_lock:
        if name not in _queues:
            _queues[name] = InMemoryRolloutQueue(maxlen)
        return _queues[name]


def _batch(groups: list[list[Rollout]], metadata: RolloutMetadata) -> RolloutBatch:
    return RolloutBatch([RolloutGroup(group) for group in groups], metadata)
