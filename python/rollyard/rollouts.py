"""Rollouts in groups and batches, and messages.

`Rollout` and `RolloutMetadata` hold Rust's memory (`rollyard._rollyard`); these gather them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rollyard._rollyard import Rollout, RolloutMetadata


class Message(dict[str, Any]):
    """One message of a conversation: a dict with a role, so that it goes wherever a dict does."""

    def __init__(self, role: str, content: Any = None, **fields: Any) -> None:
        super().__init__(role=role, content=content, **fields)

    @property
    def role(self) -> str:
        return str(self["role"])

    @property
    def content(self) -> Any:
        return self["content"]

    def __repr__(self) -> str:
        fields = "".join(
            f", {key}={value!r}" for key, value in self.items() if key not in ("role", "content")
        )
        return f"Message({self.role!r}, {self.content!r}{fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_message, (dict(self),))

    def __copy__(self) -> Message:
        return _message(dict(self))


def _message(fields: dict[str, Any]) -> Message:
    return Message(**fields)


@dataclass(frozen=True, slots=True)
class RolloutGroup:
    """Rollouts of one example, to be compared with each other."""

    rollouts: list[Rollout]

    def __len__(self) -> int:
        return len(self.rollouts)

    def __iter__(self) -> Iterator[Rollout]:
        return iter(self.rollouts)


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """What a worker sends at once."""

    groups: list[RolloutGroup]
    metadata: RolloutMetadata = field(default_factory=RolloutMetadata)

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[RolloutGroup]:
        return iter(self.groups)


def resolve_metadata(batch: RolloutBatch) -> RolloutBatch:
    """The batch with metadata on every rollout: one without takes the batch's, as old data means it."""
    groups = [RolloutGroup([rollout.fill_metadata(batch.metadata) for rollout in group]) for group in batch]
    return RolloutBatch(groups, batch.metadata)
