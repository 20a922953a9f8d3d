"""`register`: a generator file without globals to remember.

The server looks for `TASK_TYPE`, `run_rollout` and the hooks among the globals of the file; the decorators
put them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# In the order in which they are applied to the groups of a run.
HOOKS = (
    "get_group_data_meta_info",
    "is_valid_group",
    "transform_group",
    "filter_item",
    "normalize_group_data",
    "pad_group_data",
)
_FILE_ENDING = "_generator"


class Register:
    """`@register("my_task")` above the function that makes rollouts, `@register.hook` above hooks."""

    def __call__(self, task_type: str | None = None) -> Callable[[F], F]:
        """The function becomes the file's `run_rollout`; without a name, the file gives its own."""
        if callable(task_type):
            raise TypeError('write @register() or @register("my_task"), with parentheses')

        def put(function: F) -> F:
            named = task_type or function.__module__.rpartition(".")[2].removesuffix(_FILE_ENDING)
            _globals(function).update(TASK_TYPE=named, run_rollout=function)
            return function

        return put

    def hook(self, function: F) -> F:
        """The function becomes the hook of its name."""
        name = function.__name__
        if name not in HOOKS:
            raise ValueError(f"{name} is no hook; there are {', '.join(HOOKS)}")
        _globals(function)[name] = function
        return function


register = Register()


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = function.__globals__
    return found
