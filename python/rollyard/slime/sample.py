"""`Sample`: slime's own class where slime is installed, so that its trainer gets what it made itself.

Elsewhere, in tests and in trainers that only speak slime's format, an equal one.
"""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any


@dataclass
class Sample:
    """One row of a training batch, with the fields of slime's class that a trainer reads."""

    class Status(Enum):
        """How the making of a sample ended."""

        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"
        FAILED = "failed"

    group_index: int | None = None
    index: Any = None
    prompt: Any = ""
    tokens: list[int] = field(default_factory=list)
    multimodal_inputs: dict[str, Any] | None = None
    multimodal_train_inputs: dict[str, Any] | None = None
    response: str = ""
    response_length: int = 0
    label: Any = None
    reward: Any = None
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    rollout_routed_experts: Any = None
    remove_sample: bool = False
    teacher_log_probs: list[float] | None = None
    status: Status = Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    generate_function_path: str | None = None
    train_metadata: dict[str, Any] | None = None
    session_id: str | None = None
    non_generation_time: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"status": self.status.value}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Sample:
        """The sample of a dict, also of slime's; what has no field here is kept as an attribute."""
        sample = Sample()
        for name, value in data.items():
            setattr(sample, name, Sample.Status(value) if name == "status" else value)
        return sample

    def get_reward_value(self, args: Any) -> Any:
        return self.reward[args.reward_key] if args.reward_key else self.reward

    @property
    def effective_response_length(self) -> int:
        return self.response_length if self.loss_mask is None else sum(self.loss_mask)


@cache
def sample_class() -> type[Any]:
    """Slime's class, or ours. Asked for when the first sample is made: slime imports torch."""
    try:
        kind: type[Any] = importlib.import_module("slime.utils.types").Sample
    except ModuleNotFoundError as missing:
        # A slime that is there and fails to load is for its owner to hear of.
        if not (missing.name or "").startswith("slime"):
            raise
        return Sample
    return kind


def make_sample(status: str, fields: dict[str, Any]) -> Any:
    """A sample with these fields, without those that this version of slime does not have yet."""
    kind = sample_class()
    known = {each.name for each in dataclasses.fields(kind)}
    given = {name: value for name, value in fields.items() if name in known}
    return kind(**given, status=getattr(kind.Status, status))
