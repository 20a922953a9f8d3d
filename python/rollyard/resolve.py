"""Workflows and functions by what users call them: an instance, a class, or "module.Class"."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rollyard.errors import WorkflowError
from rollyard.workflow import RolloutWorkflow, wrap_agent


def resolve_workflow(workflow: Any, kwargs: Mapping[str, Any] | None = None) -> RolloutWorkflow:
    """A workflow to run, of an instance, a class, or a class's name; `kwargs` are for classes."""
    if isinstance(workflow, str):
        workflow = import_path(workflow, _is_workflow_class, "a class with arun_episode(engine, data)")
    if inspect.isclass(workflow):
        workflow = _made(workflow, kwargs or {})
    elif kwargs:
        raise WorkflowError(
            f"workflow_kwargs ({', '.join(kwargs)}) were given with a {type(workflow).__qualname__}, "
            "which is made already; give the class"
        )
    if callable(getattr(workflow, "arun_episode", None)):
        return _checked(workflow)
    if callable(getattr(workflow, "run", None)):
        return wrap_agent(workflow)
    raise WorkflowError(f"{_shown(workflow)} is no workflow: it has no arun_episode(engine, data)")


def import_path(path: str, suits: Callable[[Any], bool], wanted: str) -> Any:
    """What "module.name" names. Errors say what was found instead."""
    module_name, _, name = path.rpartition(".")
    if not module_name or not name:
        raise WorkflowError(f'{path!r} names nothing to import; write "module.name"')
    module = _module(path, module_name)
    if not hasattr(module, name):
        offers = [key for key, value in vars(module).items() if _is_own(module, value) and suits(value)]
        there = f"it has {', '.join(sorted(offers))}" if offers else f"it has nothing that is {wanted}"
        raise WorkflowError(f"the module {module_name} has no {name}; {there}: {module.__file__}")
    found = getattr(module, name)
    if not suits(found) and not callable(getattr(found, "run", None)):
        raise WorkflowError(f"{path} is {_shown(found)}, but must be {wanted}: {module.__file__}")
    return found


def class_name(workflow: Any) -> str:
    """What worker processes import a workflow by."""
    if isinstance(workflow, str):
        return workflow
    if not inspect.isclass(workflow):
        raise WorkflowError(
            f"worker processes cannot be given a {type(workflow).__qualname__} that is made already; "
            'give its class or "module.Class" with workflow_kwargs, or processes=0'
        )
    return import_name(workflow, "put it into one, or use processes=0")


def import_name(found: Any, remedy: str = "put it into one") -> str:
    """What worker processes import a class or a function by."""
    name = getattr(found, "__qualname__", repr(found))
    if getattr(found, "__module__", "__main__") == "__main__" or "<" in name:
        raise WorkflowError(f"worker processes cannot import {name}: it is not in a module; {remedy}")
    return f"{found.__module__}.{name}"


def _module(path: str, module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that is there may import one that is not.
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise WorkflowError(
                f"{path} cannot be imported: {module_name} needs {error.name}, which is not installed"
            ) from error
        raise WorkflowError(
            f"{path} cannot be imported: there is no module {error.name}; "
            "is its folder on PYTHONPATH, or the working directory?"
        ) from error
    except Exception as error:
        kind = type(error).__qualname__
        raise WorkflowError(f"{path} cannot be imported: {module_name} raised {kind}: {error}") from error


def _made(kind: type[Any], kwargs: Mapping[str, Any]) -> Any:
    if not _is_workflow_class(kind) and not callable(getattr(kind, "run", None)):
        raise WorkflowError(f"{_shown(kind)} is no workflow: it has no arun_episode(engine, data)")
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


def _is_workflow_class(value: Any) -> bool:
    return inspect.isclass(value) and callable(getattr(value, "arun_episode", None))


def _is_own(module: Any, value: Any) -> bool:
    return bool(getattr(value, "__module__", None) == module.__name__)


def _shown(value: Any) -> str:
    if inspect.isclass(value):
        return f"the class {value.__qualname__}"
    article = "an" if type(value).__qualname__[:1].lower() in "aeiou" else "a"
    return f"{article} {type(value).__qualname__}"
