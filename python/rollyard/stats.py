"""Numbers that workflows record, by scope and name.

`get(scope).scalar(reward=1.0)` may be called from any thread, and from worker processes: what is recorded
there comes back with the episodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypedDict

from rollyard import _rollyard, workflow_context


class Summary(TypedDict):
    """Of all values under one name."""

    count: int
    mean: float
    min: float
    max: float


@dataclass(frozen=True)
class Scope:
    """Where some statistics belong."""

    name: str

    def scalar(self, **values: float) -> None:
        """Records one value under each name. What is not a finite number is an error that names it."""
        for name, value in values.items():
            _rollyard.record(self.name, name, float(value))


def get(scope: str | None = None) -> Scope:
    """A scope; by default the one of the episode that runs here."""
    return Scope(workflow_context.stat_scope() if scope is None else scope)


def export(*, reset: bool = True) -> dict[str, dict[str, Summary]]:
    """Everything that was recorded, by scope and name; begins anew unless told otherwise."""
    recorded = json.loads(_rollyard.recorded(reset))
    return {
        scope: {
            name: Summary(count=v["count"], mean=v["sum"] / v["count"], min=v["min"], max=v["max"])
            for name, v in names.items()
        }
        for scope, names in recorded.items()
    }
