"""Functions as tools: what a model is told of a function, by its signature."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from rollyard.importing import import_path

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def describe(path: str) -> dict[str, Any]:
    """The schema of "module.function", as a chat template is given it."""
    return schema_of(import_path(path, callable, "a function"))


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """`{"type": "function", "function": {...}}`: the function's own `schema`, or one of its signature.

    The description is the first paragraph of the docstring; parameters without a default are required.
    """
    given = getattr(function, "schema", None)
    if isinstance(given, Mapping):
        return dict(given)
    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = _type_of(hints.get(name))
        if parameter.default is parameter.empty:
            required.append(name)
    about = inspect.getdoc(function) or ""
    return {
        "type": "function",
        "function": {
            "name": function.__name__,
            "description": " ".join(about.partition("\n\n")[0].split()),
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


def _type_of(hint: Any) -> dict[str, Any]:
    """What JSON calls it; nothing where it has no one name for it."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return {"enum": list(typing.get_args(hint))}
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return _type_of(kinds[0]) if len(kinds) == 1 else {}
    name = _TYPES.get(origin or hint)
    if name is None:
        return {}
    items = typing.get_args(hint)
    if name == "array" and items:
        return {"type": name, "items": _type_of(items[0])}
    return {"type": name}
