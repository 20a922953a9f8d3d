"""The data set of a task: JSON lines, each with an `instance_id` and a `prompt`.

Every line is looked at once, before any work begins, so that a bad one is told at the start and not hours
into the run. Only where the lines are is kept; a line is read again when it is worked on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rollyard.errors import RollyardError


class InputError(RollyardError, ValueError):
    """The input file cannot be worked on."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A line of the file."""

    id: str
    number: int
    offset: int
    size_bytes: int


class DataSet:
    """The lines of a file that stays open, so that replacing the file changes nothing for this run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._file = open(self.path, "rb")  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise InputError(f"the input file cannot be read: {error.strerror}: {self.path}") from error
        try:
            self.instances = list(self._scan())
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> DataSet:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def line(self, instance: Instance) -> bytes:
        """The line as it stands in the file."""
        return os.pread(self._file.fileno(), instance.size_bytes, instance.offset)

    def _scan(self) -> Iterator[Instance]:
        lines_by_id: dict[str, int] = {}
        offset = 0
        for number, line in enumerate(self._file, 1):
            start, offset = offset, offset + len(line)
            if not line.strip():
                continue
            name = self._check(number, line)
            first = lines_by_id.setdefault(name, number)
            if first != number:
                raise self._bad(number, f"instance_id {name!r} is that of line {first} too")
            yield Instance(name, number, start, len(line))

    def _check(self, number: int, line: bytes) -> str:
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise self._bad(number, f"not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise self._bad(number, f"not a JSON object, but a {type(fields).__name__}")
        name = fields.get("instance_id")
        if name is None:
            remedy = f"`rollyard assign-ids --input {self.path}` gives every line one"
            raise self._bad(number, f"no instance_id; {remedy}")
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise self._bad(number, f"instance_id is {name!r}, but must be a text or a whole number")
        if not isinstance(fields.get("prompt"), (str, list)):
            raise self._bad(number, "prompt must be a text or a list of messages")
        return str(name)

    def _bad(self, number: int, what: str) -> InputError:
        return InputError(f"line {number}: {what}: {self.path}")


def prompt_messages(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The prompt of a line as messages; a bare text is what the user says."""
    prompt = fields["prompt"]
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
