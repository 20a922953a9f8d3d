"""Workflows by what users call them: an instance, a class, a function, or "module.Class"."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rollyard.agents import AgentWorkflow, is_agent, is_agent_or_workflow
from rollyard.errors import WorkflowError
from rollyard.importing import import_path, shown
from rollyard.workflow import RolloutWorkflow


def resolve_workflow(
    workflow: Any, kwargs: Mapping[str, Any] | None = None
) -> RolloutWorkflow | AgentWorkflow:
    """A workflow to run, of an instance, a class, or a class's name; `kwargs` are for classes.

    What has `async def run(data, …)` and no `arun_episode` is an agent, and becomes an `AgentWorkflow`.
    """
    if isinstance(workflow, str):
        workflow = import_path(workflow, is_agent_or_workflow, "a class with arun_episode(engine, data)")
    if is_agent(workflow):
        return AgentWorkflow(workflow, agent_kwargs=kwargs)
    if inspect.isclass(workflow):
        workflow = _made(workflow, kwargs or {})
    elif kwargs:
        raise WorkflowError(
            f"workflow_kwargs ({', '.join(kwargs)}) were given with a {type(workflow).__qualname__}, "
            "which is made already; give the class"
        )
    if isinstance(workflow, AgentWorkflow):
        return workflow
    if callable(getattr(workflow, "arun_episode", None)):
        return _checked(workflow)
    raise WorkflowError(f"{shown(workflow)} is no workflow: it has no arun_episode(engine, data)")


def _made(kind: type[Any], kwargs: Mapping[str, Any]) -> Any:
    if not is_agent_or_workflow(kind):
        raise WorkflowError(f"{shown(kind)} is no workflow: it has no arun_episode(engine, data)")
    try:
        return kind(**kwargs)
    except TypeError as error:
        given = ", ".join(kwargs) or "nothing"
        raise WorkflowError(f"{kind.__qualname__} cannot be made with {given}: {error}") from error


def _checked(workflow: Any) -> RolloutWorkflow:
    if not inspect.iscoroutinefunction(workflow.arun_episode):
        name = type(workflow).__qualname__
        raise WorkflowError(
            f"{name}.arun_episode is not async; write async def arun_episode(self, engine, data)"
        )
    checked: RolloutWorkflow = workflow
    return checked
