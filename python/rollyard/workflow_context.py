"""Which episode is running here.

The context belongs to the episode, not to the thread: tasks that an episode makes and functions that it runs
by `asyncio.to_thread` see it too, and episodes that run at once each see their own.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class WorkflowContext:
    """`seed` is the same for the same run seed, task and sample, whenever and wherever it runs."""

    is_eval: bool = False
    task_id: int | None = None
    sample_idx: int = 0
    """Which of the group."""
    run: str = "default"
    seed: int = 0
    attempt: int = 0
    """From 0; counts the times it failed before."""


_NOWHERE = WorkflowContext()
_current: ContextVar[WorkflowContext] = ContextVar("rollyard.workflow_context")


def get() -> WorkflowContext:
    """The context of the episode that runs here; one without a task where none does."""
    return _current.get(_NOWHERE)


def set(context: WorkflowContext) -> None:
    """For tests, and for programs that run episodes themselves."""
    _current.set(context)


def stat_scope() -> str:
    """Where statistics of this episode belong: "rollout" or "eval-rollout"."""
    return "eval-rollout" if get().is_eval else "rollout"
