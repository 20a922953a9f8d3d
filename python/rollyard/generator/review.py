"""Runs the hooks of a generator file on groups, and says what has become of every item.

Hooks get copies, and may change, drop, double and invent items as they like. What they return is compared
with what they were given: only the difference goes back to the server, which keeps the items to the byte.
"""

from __future__ import annotations

import json
import marshal
import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from rollyard.client.encode import plain
from rollyard.generator import hooks
from rollyard.generator.load import told

Item: TypeAlias = dict[str, Any]
Hook: TypeAlias = Callable[..., Any]
Answer: TypeAlias = dict[str, Any]

# The steps that shape a group, by the knobs that choose their defaults.
_STEPS = {"filter": "filter_item", "normalize": "normalize_group_data", "pad": "pad_group_data"}
_SHAPING = set(_STEPS.values())
_FINISHED_NOT_VALID = "is_valid_group said the group is finished and not valid"
_UNDECIDED = "is_valid_group said the group is neither finished nor valid, and no more will come"


class HookError(Exception):
    """A hook raised, or returned what cannot be used."""


class Reviewer:
    """The steps of one order, with the hooks of one file."""

    def __init__(self, module: ModuleType, path: str, order: dict[str, Any]) -> None:
        self._path = path
        self._task_type = order["task_type"]
        self._group_size = order["group_size"]
        self._valid_items = order["valid_items"]
        self._knobs = order.get("defaults") or {}
        self._skip = set(order.get("skip") or ())
        self._skip |= {step for knob, step in _STEPS.items() if self._knobs.get(knob) == "none"}
        self._hooks: dict[str, Hook] = {name: getattr(module, name) for name in order["hooks"]}
        # Whoever transforms whole groups, and shapes them no further, has done all of it.
        self._transforms_alone = "transform_group" in self._hooks and not self._hooks.keys() & _SHAPING

    def review(self, group: dict[str, Any]) -> Answer:
        """What becomes of a group; never raises."""
        number = group["group"]
        try:
            return {"group": number, **self._review(group)}
        except HookError as error:
            return {"group": number, "failed": str(error)}
        except hooks.CannotPadError as error:
            return {"group": number, "invalid": str(error)}
        except Exception as error:
            # A step of ours, on items that a hook has broken.
            return {"group": number, "failed": f"after the hooks: {told(error, self._path)}"}

    def _review(self, group: dict[str, Any]) -> Answer:
        given = group["items"]
        # Items are JSON, which this copies several times faster than copy.deepcopy.
        items: list[Item] = marshal.loads(marshal.dumps(given))
        instance_id = group["instance_id"]
        members = _Members(given, items, instance_id)
        verdict = self._verdict(group, (instance_id, items))
        if verdict is not None:
            return verdict
        if "transform_group" in self._hooks:
            items = self._items("transform_group", (instance_id, items), self._task_type)
        if not self._transforms_alone:
            items = self._filtered(items)
            if len(items) < self._valid_items:
                return {"too_few_valid": True}
            items = self._padded(instance_id, self._normalized(instance_id, items))
        if not items:
            raise HookError("no items are left of the group")
        return {"rows": [_row(members, item) for item in items]}

    def _verdict(self, group: dict[str, Any], passed: tuple[str, list[Item]]) -> Answer | None:
        """What speaks against going on with a group."""
        growing = group["stage"] == "growing"
        if "is_valid_group" not in self._hooks:
            why = self._broken_rule(passed[1], group["min_size"])
            return None if why is None else {"waiting": True} if growing else {"invalid": why}
        said = self._call("is_valid_group", passed, group["min_size"], self._task_type)
        pair = said if isinstance(said, (tuple, list)) else (said, False)
        if len(pair) != 2 or not all(_is_truth(each) for each in pair):
            raise HookError(f"is_valid_group returned {_shown(said)}, not a bool or (valid, finished)")
        valid, finished = map(bool, pair)
        if valid:
            return None
        if finished:
            return {"invalid": _FINISHED_NOT_VALID}
        return {"waiting": True} if growing else {"invalid": _UNDECIDED}

    def _broken_rule(self, items: list[Item], min_size: int) -> str | None:
        if len(items) < min_size:
            return f"{len(items)} rollouts, but at least {min_size} are needed"
        if "is_valid_group" in self._skip:
            return None
        rule = self._knobs.get("validate") or ("answered" if self._task_type == "math" else "varied")
        if rule == "answered" and sum(map(hooks.is_answered, items)) < min_size:
            return f"fewer than {min_size} rollouts end in an answer"
        return "all rewards are equal" if rule == "varied" and not hooks.is_varied(items) else None

    def _filtered(self, items: list[Item]) -> list[Item]:
        if "filter_item" in self._hooks:
            return [item for item in items if self._passes(item)]
        if "filter_item" in self._skip:
            return items
        low, high = self._knobs.get("reward_min", 0.0), self._knobs.get("reward_max", 1.0)
        passes = partial(hooks.filter_item, reward_min=low, reward_max=high)
        return [item for item in items if passes(item, self._task_type)]

    def _passes(self, item: Item) -> bool:
        said = self._call("filter_item", item, self._task_type)
        if not _is_truth(said):
            raise HookError(f"filter_item returned {_shown(said)}, not a bool")
        return bool(said)

    def _normalized(self, instance_id: str, items: list[Item]) -> list[Item]:
        if "normalize_group_data" in self._hooks:
            return self._items("normalize_group_data", (instance_id, items))
        if "normalize_group_data" in self._skip:
            return items
        # What has passed the filter is on the scale, whatever the filter was.
        every = {"reward_min": -math.inf, "reward_max": math.inf}
        algo = self._knobs.get("normalize") or "grpo"
        return hooks.normalize_group_data((instance_id, items), algo=algo, **every)[1]

    def _padded(self, instance_id: str, items: list[Item]) -> list[Item]:
        size = self._group_size
        if "pad_group_data" in self._hooks:
            rows = self._items("pad_group_data", (instance_id, items), size)
            if not rows or len(rows) % size:
                raise HookError(f"pad_group_data returned {len(rows)} items, not a multiple of {size}")
            return rows
        # A group that was transformed may have more items than its size, and is not scaled then.
        enough = "transform_group" in self._hooks and len(items) >= size
        if "pad_group_data" in self._skip or enough:
            return items
        pad = hooks.mask_group_data if self._knobs.get("pad") == "mask" else hooks.pad_group_data
        return pad((instance_id, items), size)[1]

    def _items(self, name: str, *arguments: Any) -> list[Item]:
        """The items that a hook returned, with the instance's id or without."""
        said = self._call(name, *arguments)
        items = said
        if isinstance(said, (tuple, list)) and len(said) == 2 and isinstance(said[1], list):
            items = said[1]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise HookError(f"{name} returned {_shown(said)}, not (instance_id, items)")
        return items

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._hooks[name](*arguments)
        except hooks.CannotPadError:
            # Said by our own step, which the hook has called: the group is at fault, and not the hook.
            raise
        except BaseException as error:
            # SystemExit too: it is the group's, and not the end of the process.
            raise HookError(f"{name} raised {told(error, self._path)}") from error


def _row(members: _Members, item: Item) -> dict[str, Any]:
    """An item as its difference from the member that it shows."""
    member, marks = members.place(item)
    original = {} if member is None else members.given[member]
    row = {**item, **marks, "reward": _reward(item, marks)}
    fields = {name: value for name, value in row.items() if name not in original or original[name] != value}
    return {"member": member, "set": _json(fields), "unset": [name for name in original if name not in row]}


class _Members:
    """Tells the items of a group apart, in whatever list they come back."""

    def __init__(self, given: list[Item], copies: list[Item], instance_id: str) -> None:
        self.given = given
        # Kept, so that no other object can take the identity of one.
        self._copies = copies
        self._instance_id = instance_id
        self._by_identity = {id(copy): index for index, copy in enumerate(copies)}
        self._by_uid = {str(item["uid"]): index for index, item in enumerate(given)}
        self._shown: set[int] = set()
        self._uids: set[str] = set()
        self._copied = 0

    def place(self, item: Item) -> tuple[int | None, Item]:
        """Which member an item shows, and the fields that tell it from the others."""
        uid = item.get("uid")
        member = self._by_uid.get(str(uid), self._by_identity.get(id(item)))
        if member is None and isinstance(uid, str):
            # One of those that our own padding makes, or a hook that names its copies alike.
            member = self._by_uid.get(uid.rpartition("#pad")[0])
        marks: Item = {}
        if member is None:
            marks = {"uid": self._fresh("new") if uid is None else uid}
            marks["instance_id"] = item.get("instance_id", self._instance_id)
        elif member in self._shown and (uid is None or str(uid) in self._by_uid):
            marks = {"uid": self._fresh("pad", member), "padded": True}
        elif uid is None:
            marks = {"uid": self.given[member]["uid"]}
        if member is not None:
            self._shown.add(member)
        return member, self._unique(str(marks.get("uid", uid)), marks)

    def _fresh(self, kind: str, member: int = 0) -> str:
        while True:
            self._copied += 1
            uid = f"{self.given[member]['uid']}#{kind}{self._copied}"
            if uid not in self._uids:
                return uid

    def _unique(self, uid: str, marks: Item) -> Item:
        if uid in self._uids:
            raise HookError(f"two items have the uid {uid!r} after the hooks")
        self._uids.add(uid)
        return marks


def _reward(item: Item, marks: Item) -> float:
    given: Any = item.get("reward")
    # A number of numpy or torch is one too.
    reward = given.item() if hasattr(given, "item") else given
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        uid = marks.get("uid", item.get("uid"))
        raise HookError(f"the reward of {uid!r} is {given!r} after the hooks, which is no finite number")
    return reward


def _json(fields: Item) -> Item:
    """The fields, if JSON can say them. A group that it cannot must not spoil the answer for the others."""
    try:
        json.dumps(fields, allow_nan=False)
        return fields
    except (TypeError, ValueError, RecursionError):
        pass
    written: Item = {}
    for name, value in fields.items():
        try:
            written[name] = json.loads(json.dumps(value, allow_nan=False, default=plain))
        except (TypeError, ValueError, RecursionError) as error:
            raise HookError(f"the field {name!r} is no JSON after the hooks: {error}") from error
    return written


def _is_truth(value: Any) -> bool:
    # numpy has a bool of its own, and slime's own hooks return 0 and 1 at times.
    return isinstance(value, (bool, int)) or type(value).__name__ in ("bool_", "bool")


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__qualname__}"
