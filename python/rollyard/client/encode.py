"""Turns rollouts into lines of JSON, and lines into bodies of a sensible size."""

from __future__ import annotations

import json
import reprlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rollyard._rollyard import item_of
from rollyard.errors import RolloutError
from rollyard.rollouts import RolloutBatch, resolve_metadata

# The server tells at most so many refused lines of a body in full.
BODY_LINES_MAX = 1000
BODY_BYTES_MAX = 4 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A rollout, ready to be sent as often as it takes: the same bytes each time."""

    index: int
    uid: str
    content: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    """What cannot be sent."""

    index: int
    uid: str | None
    error: RolloutError


def encode(rollout: Mapping[str, Any], *, index: int = 0) -> Line:
    """The rollout as JSON, with a `uid` of its own if it has none. The caller's mapping is left alone."""
    if not isinstance(rollout, Mapping):
        raise RolloutError(f"a rollout is a mapping, not {type(rollout).__name__}")
    fields = dict(rollout)
    if fields.get("uid") is None:
        fields["uid"] = str(uuid.uuid4())
    return Line(index, str(fields["uid"]), item_json(fields))


def encode_batches(batches: Iterable[RolloutBatch]) -> Iterator[Line | BadLine]:
    """Rollouts to the token as lines, each with a uid of its own and the size of its group."""
    index = 0
    for batch in map(resolve_metadata, batches):
        for group in batch.groups:
            for rollout in group.rollouts:
                uid = str(uuid.uuid4())
                try:
                    yield Line(index, uid, item_of(rollout, uid, len(group.rollouts)))
                except RolloutError as error:
                    yield BadLine(index, uid, error)
                index += 1


def item_json(fields: Mapping[str, Any]) -> bytes:
    """The fields of a rollout as JSON; what is none is an error that names the field."""
    if not isinstance(fields, Mapping):
        raise RolloutError(f"a rollout is a mapping, not {type(fields).__name__}")
    try:
        return to_json(dict(fields))
    except (TypeError, ValueError, RecursionError) as error:
        name = first_bad_field(fields)
        found = "" if name is None else f"field {name!r} is {reprlib.repr(fields[name])}: "
        message = f"rollout {fields.get('uid')!r} cannot be written as JSON: {found}{error}"
        raise RolloutError(message, field=name) from error


def to_json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    return text.encode()


def plain(value: object) -> object:
    """Arrays and numbers of numpy, torch and JAX as lists and numbers."""
    tolist = getattr(value, "tolist", None)
    if tolist is None:
        raise TypeError(f"{type(value).__name__} is no JSON type")
    return tolist()


def first_bad_field(fields: Mapping[str, Any]) -> str | None:
    for name, value in fields.items():
        try:
            to_json({name: value})
        except (TypeError, ValueError, RecursionError):
            return name
    return None


def encode_all(rollouts: Iterable[Mapping[str, Any]]) -> Iterator[Line | BadLine]:
    """Each rollout for itself: one that cannot be sent keeps no other from being sent."""
    for index, rollout in enumerate(rollouts):
        try:
            yield encode(rollout, index=index)
        except RolloutError as error:
            uid = rollout.get("uid") if isinstance(rollout, Mapping) else None
            yield BadLine(index, None if uid is None else str(uid), error)


def bodies(lines: Iterable[Line | BadLine]) -> Iterator[list[Line | BadLine]]:
    """Lines that go together. One that is large for itself goes alone, so that it is refused alone."""
    body: list[Line | BadLine] = []
    size_bytes = 0
    for line in lines:
        line_bytes = len(line.content) + 1 if isinstance(line, Line) else 0
        if body and (len(body) >= BODY_LINES_MAX or size_bytes + line_bytes > BODY_BYTES_MAX):
            yield body
            body, size_bytes = [], 0
        body.append(line)
        size_bytes += line_bytes
    if body:
        yield body
