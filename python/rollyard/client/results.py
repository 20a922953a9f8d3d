"""What the server answers, as values. Fields that a newer server adds are passed over."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from rollyard._rollyard import Rollout, rollouts_of, split_lease, split_sample
from rollyard.errors import RefusedError
from rollyard.masks import MultiTurnLossMaskGenerator

R = TypeVar("R")


def read(kind: type[R], told: Mapping[str, Any], **instead: object) -> R:
    """An instance of a data class from the fields of the same names; `instead` replaces some."""
    names = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: instead[name] if name in instead else told[name] for name in names})


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A rollout is stored."""

    uid: str
    # Stored before; after a lost answer and a retry it may have been this very call that did it.
    duplicate: bool
    group_size_now: int


@dataclass(frozen=True, slots=True)
class RejectedRollout:
    """A rollout of `write_many` that was not stored."""

    index: int
    uid: str | None
    code: str
    message: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class WriteManyResult:
    """What became of the rollouts of `write_many`: accepted + duplicates + rejected is all of them."""

    accepted: int
    duplicates: int
    rejected: tuple[RejectedRollout, ...]
    # In the order of the rollouts; `None` for one without a uid that could not be sent.
    uids: tuple[str | None, ...] = field(repr=False)

    def raise_for_rejected(self) -> None:
        """Raises `RefusedError` for the first rejected rollout, if there is one."""
        if not self.rejected:
            return
        first = self.rejected[0]
        more = f" (and {len(self.rejected) - 1} more)" if len(self.rejected) > 1 else ""
        message = f"rollout {first.index} ({first.uid!r}): {first.message}{more}"
        raise RefusedError(message, status=400, code=first.code, field=first.field)


@dataclass(frozen=True, slots=True)
class Books:
    """Where every rollout is that was ever admitted: admitted = held + leased + trained + dropped."""

    admitted: int
    held: int
    leased: int
    trained: int
    dropped: int
    dropped_by_reason: dict[str, int]
    balanced: bool
    held_bytes: int
    leased_bytes: int
    # Acked, and kept so that a rewind can put them back.
    retained: int
    retained_bytes: int


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    # False if it had been done before.
    changed: bool
    books: Books

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Done:
        return read(cls, told, books=read(Books, told["books"]))


@dataclass(frozen=True, slots=True)
class RunStats:
    """A run: its knobs, its groups, its books."""

    run: str
    config: dict[str, Any]
    # The payload of `/start_rollout`, if there was one.
    start: dict[str, Any] | None
    version: int | None
    open_groups: int
    ready_groups: int
    leases_out: int
    # Steps that a rewind can go back to.
    commits: tuple[int, ...]
    books: Books

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> RunStats:
        return read(cls, told, commits=tuple(told["commits"]), books=read(Books, told["books"]))


@dataclass(frozen=True, slots=True)
class Fate:
    """Where a rollout is, or what became of it."""

    uid: str
    # `held`, `leased`, `trained` or `dropped`.
    state: str
    instance_id: str | None
    round: int | None
    # `open` or `ready`, for one that is held.
    group: str | None
    group_size_now: int | None
    reward: float | None
    written_ms: int | None
    lease: int | None
    step: int | None
    can_rewind: bool
    reason: str | None
    # Times it was drawn and not given back, in a run that samples.
    usage_count: int | None


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """A lease that is out, or acked and still possible to rewind."""

    lease: int
    reader: str
    groups: int
    # What was drawn, in a run that samples.
    rollouts: int | None
    granted_ms: int
    # `out` or `acked`.
    status: str
    until_ms: int | None
    step: int | None


@dataclass(frozen=True)
class Group:
    """Rollouts of one round of one instance, as the pipeline made them for the trainer."""

    group: int
    instance_id: str
    round: int
    # The oldest and the newest weights they were sampled with, where known.
    versions: tuple[int, int] | None
    # Each rollout as JSON, to the byte as the server sent it.
    items: tuple[bytes, ...] = field(repr=False)

    @cached_property
    def rollouts(self) -> tuple[dict[str, Any], ...]:
        """The rollouts, decoded when they are first looked at."""
        return tuple(json.loads(item) for item in self.items)

    @property
    def version(self) -> int | None:
        """The weights that all of them were sampled with; `None` if they differ or are not known."""
        oldest, newest = self.versions or (None, None)
        return oldest if oldest == newest else None

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Granted:
    """A lease as the server grants it."""

    lease: int
    until_ms: int
    meta: dict[str, Any]
    groups: tuple[Group, ...]

    @classmethod
    def read(cls, content: bytes) -> Granted | None:
        """From the server's answer; `None` if it granted no lease."""
        told = split_lease(content)
        if told is None:
            return None
        lease, until_ms, meta, groups = told
        read_groups = (
            Group(group, instance_id, round, versions, tuple(items))
            for group, instance_id, round, versions, items in groups
        )
        return cls(lease, until_ms, json.loads(meta) or {}, tuple(read_groups))


@dataclass(frozen=True)
class Sample:
    """One process's share of the batch that was drawn for a step.

    `client.ack(sample)` says that it was trained on; one process does so for all.
    """

    lease: int
    until_ms: int
    step: int
    # Rollouts of all processes together.
    batch_size: int
    process_id: int
    total_processes: int
    # Tokens of older weights are to leave the loss.
    oldest_version: int | None
    # Each rollout as JSON, to the byte as the server sent it.
    items: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def read(cls, content: bytes) -> Sample | None:
        """From the server's answer; `None` if there was not enough to draw from."""
        told = split_sample(content)
        if told is None:
            return None
        lease, about, items = told
        return read(cls, json.loads(about), lease=lease, items=tuple(items))

    @cached_property
    def rollouts(self) -> tuple[dict[str, Any], ...]:
        """The rollouts, decoded when they are first looked at."""
        return tuple(json.loads(item) for item in self.items)

    @property
    def advantages(self) -> list[float]:
        return [rollout["advantage"] for rollout in self.rollouts]

    @property
    def usage_counts(self) -> list[int]:
        """How often each has been drawn, this time included."""
        return [rollout["usage_count"] for rollout in self.rollouts]

    def to_rollouts(self, masks: MultiTurnLossMaskGenerator | None = None) -> list[Rollout]:
        """The rollouts to the token; `masks` makes the tokens of those that carry none."""
        return rollouts_of(list(self.items), [], None if masks is None else masks.item_masks)

    def __len__(self) -> int:
        return len(self.items)
