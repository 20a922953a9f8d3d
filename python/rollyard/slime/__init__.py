"""The trainer's side of slime: a rollout function that takes its groups from a yard.

`--rollout-function-path rollyard.slime.generate_rollout` is all that a training needs to change. What a step
gets is leased, put in slime's data buffer, and only then put on the books with the step's number; a trainer
that comes back from a checkpoint rewinds to it first. So each rollout is trained on once, wherever the
trainer or the server died.

Importing this imports neither slime nor torch nor aiohttp. `Sample` and `ClientError` are looked up when they
are first used, because what they are depends on what is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollyard.slime.generate import generate_agent_rollout, generate_rollout
from rollyard.slime.metrics import log_raw_info
from rollyard.slime.read import RolloutTimeoutError, client_error, get_rollout_data
from rollyard.slime.sample import sample_class
from rollyard.slime.start import start_rollout
from rollyard.slime.waiting import OutOfRolloutsError

if TYPE_CHECKING:
    from rollyard.errors import NotReachableError as ClientError
    from rollyard.slime.sample import Sample

__all__ = [
    "ClientError",
    "OutOfRolloutsError",
    "RolloutTimeoutError",
    "Sample",
    "generate_agent_rollout",
    "generate_rollout",
    "get_rollout_data",
    "log_raw_info",
    "start_rollout",
]


def __getattr__(name: str) -> Any:
    if name == "Sample":
        return sample_class()
    if name == "ClientError":
        return client_error()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
