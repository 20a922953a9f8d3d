"""Loggers of rollouts in the viewer's format, for programs without a yard.

`RolloutLogger` appends to a file, `S3RolloutLogger` puts objects in a bucket. Logging hands a sample over
and returns; a thread of Rust's writes it a tenth of a second later. What could not be written is kept, tried
again and told. A crash loses at most what was not flushed.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from rollyard._rollyard import Lines
from rollyard.rollouts import Message as Message

logger = logging.getLogger("rollyard")

_SAMPLES_A_FLUSH = 100
_opened = itertools.count()


@dataclass
class SampleAttributes:
    """What is said of a rollout beside its messages."""

    sample_index: int
    step: int
    rollout_n: int
    reward: float
    data_source: str
    experiment_name: str
    validate: bool = False


@dataclass
class RolloutSample:
    """One rollout: its messages, its attributes, and when it was made."""

    messages: Sequence[Mapping[str, Any]]
    attributes: SampleAttributes | Mapping[str, Any]
    timestamp: str | None = None

    def __post_init__(self) -> None:
        if self.timestamp is None:
            self.timestamp = datetime.now().isoformat()

    def to_dict(self) -> dict[str, Any]:
        """The sample as it is written, with whatever fields were added to it."""
        fields = {name: value for name, value in vars(self).items() if name != "timestamp"}
        fields["messages"] = [_plain(message) for message in self.messages]
        fields["attributes"] = _plain(self.attributes)
        fields["timestamp"] = self.timestamp
        return fields

    def to_json(self) -> str:
        import json

        return json.dumps(self.to_dict())


class _Logger:
    """What both loggers do once they know where to."""

    def __init__(self, place: str, *, is_file: bool) -> None:
        self._lines = Lines(place, is_file)
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _finish, self._lines, place)

    def _log(self, sample: Mapping[str, Any]) -> None:
        if os.getpid() != self._process:
            self._after_fork()
        trouble = self._lines.log(sample)
        if trouble is not None:
            logger.error("logging goes on, but nothing reaches the file for now: %s", trouble)

    def flush(self) -> None:
        """Wait until everything is written; an error says how many samples are not."""
        self._lines.flush()

    def close(self) -> None:
        """Write everything and end. An error says how many samples are lost."""
        self._finalizer.detach()
        self._lines.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _after_fork(self) -> None:
        self._process = os.getpid()
        # A child of multiprocessing ends without the usual goodbyes, but calls these.
        if "multiprocessing.util" in sys.modules:
            from multiprocessing.util import Finalize

            place = getattr(self, "file_path", "")
            Finalize(self, _finish, args=(self._lines, place), exitpriority=10)


class RolloutLogger(_Logger):
    """Appends rollouts to a JSONL file, whole lines at a time: several processes may share it."""

    def __init__(self, file_path: str | os.PathLike[str]) -> None:
        self.file_path = os.fspath(file_path)
        super().__init__(self.file_path, is_file=True)

    def log(self, sample: RolloutSample | Mapping[str, Any]) -> None:
        """Hand a sample over to be written."""
        self._log(_plain(sample))

    def log_rollout(
        self,
        messages: Sequence[Mapping[str, Any]],
        rollout_n: int,
        reward: float,
        step: int = 1,
        sample_index: int = 0,
        data_source: str = "unknown",
        experiment_name: str = "experiment",
        validate: bool = False,
        **extra: Any,
    ) -> None:
        """Log a rollout with little to write; `extra` are further attributes."""
        attributes = {
            "sample_index": sample_index,
            "step": step,
            "rollout_n": rollout_n,
            "reward": reward,
            "data_source": data_source,
            "experiment_name": experiment_name,
            "validate": validate,
            **extra,
        }
        self.log(RolloutSample(messages=messages, attributes=attributes))


class S3RolloutLogger(_Logger):
    """Puts rollouts in a bucket: an object every hundred samples, and one with each flush.

    The first is `key`; those after it have a number before their ending: `….0001.jsonl`. An object cannot be
    appended to, and none is ever read back. Credentials come from where they do for every place.
    """

    def __init__(self, bucket: str, key_prefix: str, experiment_name: str) -> None:
        self.bucket = bucket
        self.experiment_name = experiment_name
        moment = datetime.now().strftime("%Y-%m-%d_%H%M%S")
        # Workers that start in the same second must not write over each other.
        worker = f"{socket.gethostname()}-{os.getpid()}-{next(_opened)}"
        prefix = "/".join(part for part in (key_prefix.strip("/"), experiment_name) if part)
        self.key = f"{prefix}/{moment}-{worker}.jsonl"
        self.sample_count = 0
        super().__init__(f"s3://{bucket}/{self.key}", is_file=False)

    def log(self, sample: RolloutSample | Mapping[str, Any]) -> None:
        """Hand a sample over to be uploaded with the next hundred, or with a flush."""
        self._log(_plain(sample))
        self.sample_count += 1
        if self.sample_count % _SAMPLES_A_FLUSH == 0:
            self._lines.flush_soon()

    def close(self) -> None:
        """Upload what there is and end. An error says how many samples are lost."""
        super().close()
        print(f"Logged {self.sample_count} samples to s3://{self.bucket}/{self.key}")

    def _after_fork(self) -> None:
        raise RuntimeError("this S3RolloutLogger was opened before a fork; open one in each process")


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if hasattr(value, "to_dict"):
        return dict(value.to_dict())
    return dict(value) if isinstance(value, Mapping) else dict(vars(value))


def _finish(lines: Lines, place: str) -> None:
    try:
        lines.close()
    except OSError as error:
        print(f"rollyard: samples are lost at exit: {error}: {place}", file=sys.stderr)
