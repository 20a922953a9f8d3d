"""User code by its name: "module.name" here and in worker processes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

from rollyard.errors import WorkflowError


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
    if not suits(found):
        raise WorkflowError(f"{path} is {shown(found)}, but must be {wanted}: {module.__file__}")
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


def shown(value: Any) -> str:
    """What it is, for errors."""
    if inspect.isclass(value):
        return f"the class {value.__qualname__}"
    article = "an" if type(value).__qualname__[:1].lower() in "aeiou" else "a"
    return f"{article} {type(value).__qualname__}"


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


def _is_own(module: Any, value: Any) -> bool:
    return bool(getattr(value, "__module__", None) == module.__name__)
