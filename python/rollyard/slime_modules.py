"""Lets generator files that were written for slime import what they always did, where slime is not installed.

`install()` makes a few of slime's modules importable, backed by ours. The server calls it before it loads a
generator file; nothing happens when rollyard is imported. Where slime is installed, its own are used.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_GENERATOR = "slime_plugins.rollout_buffer.generator"


def install() -> None:
    """Makes the modules importable. A second time changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Last: whatever is really there is found first.
        sys.meta_path.append(_Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent = fullname.rpartition(".")[0]
        # Inside a real slime, a module that is missing is missing: half of each would be worse than none.
        if fullname not in _MODULES or (parent and not isinstance(_loader(parent), _Finder)):
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in _MODULES)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_MODULES[module.__name__]())


def _loader(name: str) -> object:
    return getattr(sys.modules[name].__spec__, "loader", None)


def _nothing() -> dict[str, Any]:
    return {}


def _base_generator() -> dict[str, Any]:
    from rollyard.generator import base, hooks, rewards, turn

    return {
        "TASK_TYPE": base.TASK_TYPE,
        "SAMPLING_PARAMS": base.SAMPLING_PARAMS,
        "BaseGenerator": base.BaseGenerator,
        "run_rollout": base.run_rollout,
        "query_single_turn": turn.query_single_turn,
        "get_rule_based_math_reward": rewards.get_rule_based_math_reward,
        "normalize_group_data": hooks.normalize_group_data,
        "is_valid_group": _is_valid_math_group,
    }


def _is_valid_math_group(group: Any, min_valid_group_size: int, task_type: str = "math") -> tuple[bool, bool]:
    """The rule of slime's template, which is that of mathematics whatever the task is called."""
    from rollyard.generator import hooks

    return hooks.is_valid_group(group, min_valid_group_size, "math")


def _default_func() -> dict[str, Any]:
    from rollyard.generator import hooks

    return {
        "default_get_group_data_meta_info": hooks.get_group_data_meta_info,
        "default_is_valid_group": hooks.is_valid_group,
        "default_filter_item": hooks.filter_item,
        "default_normalize_group_data": hooks.normalize_group_data,
        "default_pad_group_data": hooks.pad_group_data,
        "is_valid_reward": hooks.is_valid_reward,
    }


def _rm_hub() -> dict[str, Any]:
    from rollyard.generator import rewards

    return {"get_deepscaler_rule_based_reward": rewards.get_deepscaler_rule_based_reward}


_MODULES: dict[str, Callable[[], dict[str, Any]]] = {
    "slime_plugins": _nothing,
    "slime_plugins.rollout_buffer": _nothing,
    _GENERATOR: _nothing,
    f"{_GENERATOR}.base_generator": _base_generator,
    f"{_GENERATOR}.utils": _nothing,
    f"{_GENERATOR}.utils.default_func": _default_func,
    "slime": _nothing,
    "slime.rollout": _nothing,
    "slime.rollout.rm_hub": _rm_hub,
}
