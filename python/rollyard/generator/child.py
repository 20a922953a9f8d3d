"""How the server runs generator files: in processes of their own, so that their crash is an event.

Run by Rollyard, never by hand, in two ways.

`python -m rollyard.generator.child run FILE` makes rollouts. It reads the start payload as JSON from standard
input, to the end, and calls `run_rollout(payload)` of the file. It exits with 0 when that returns and with 1
after an exception, whose traceback is on standard error. It ends when its parent does.

The functions below are called through a worker process (`python -m rollyard.host`), by the names
`rollyard.generator.child.inspect_file`, `.review` and `.meta`. `stamp` is the time at which the file was
changed, in seconds as `os.stat` has it: another stamp loads the file again.

`inspect_file(path)` returns

    {"task_type": str | None, "hooks": [names], "problem": str | None}

where `hooks` are those of `rollyard.generator.HOOKS` that the file has, and `problem` says why the file is of
no use; it names the file. It never raises.

`review(path, stamp, order, groups)` judges and shapes groups. `order` is

    {"task_type": str, "group_size": int, "min_valid_group_size": int, "valid_items": int,
     "hooks": [names of hooks to use], "skip": [names of steps whose knob is "none"],
     "defaults": {"reward_min": float, "reward_max": float,
                  "validate": "varied" | "answered" | "sized", "filter": "range" | "none",
                  "normalize": "grpo" | "center" | "none", "pad": "repeat" | "mask" | "none"}}

where `defaults` are the run's knobs, each of which may be left out, "none" is as good as a mention in `skip`,
and a group is

    {"group": int, "instance_id": str, "stage": "growing" | "full" | "timed_out" | "closed",
     "min_size": int, "items": [item, …]}

It returns a list as long as `groups` and in its order, each one of

    {"group": int, "waiting": true}
    {"group": int, "invalid": str}            the reason; also of a group too short to be padded
    {"group": int, "too_few_valid": true}     fewer than `valid_items` passed filter_item
    {"group": int, "failed": str}             a hook raised, or returned what cannot be used
    {"group": int, "rows": [{"member": int | null, "set": {field: value}, "unset": [field, …]}, …]}

A row is the item `items[member]` with the fields of `set` put in place of its own, whole, and those of
`unset` taken away. The first row of a member keeps its uid. Every further one is a copy: its `set` has
`"padded": true` and a uid of its own, `"{uid}#pad{k}"` for the k-th copy in the group, unless the hook gave
it one. A row that is no member's has `member` null and is all in `set`, with a uid and an instance_id. Every
row has a finite reward, no two have the same uid, and there is at least one.

The steps are is_valid_group, transform_group, filter_item, normalize_group_data and pad_group_data, in this
order. Those in `hooks` are the file's, those in `skip` are left out, the rest are the defaults of
`rollyard.generator.hooks`. With a custom transform_group and none of the three after it, these are left out.

`meta(path, stamp, groups)` calls `get_group_data_meta_info({instance_id: [item, …]})` and returns the dict
that it gave; anything else is a `TypeError` that says what it was.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rollyard.client.encode import plain
from rollyard.generator.lifeline import die_with_parent
from rollyard.generator.load import LoadError, load, load_once
from rollyard.generator.registry import HOOKS
from rollyard.generator.review import Reviewer

Item = dict[str, Any]


def inspect_file(path: str) -> dict[str, Any]:
    """What a generator file offers, or what is wrong with it."""
    try:
        module = load(path)
        problem = _problem(module, path)
    except LoadError as error:
        return {"task_type": None, "hooks": [], "problem": str(error)}
    task_type = getattr(module, "TASK_TYPE", None)
    hooks = [name for name in HOOKS if callable(getattr(module, name, None))]
    return {
        "task_type": task_type if isinstance(task_type, str) else None,
        "hooks": hooks,
        "problem": problem,
    }


def review(
    path: str, stamp: float, order: dict[str, Any], groups: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What becomes of each group. One that fails leaves the others alone."""
    try:
        module = load_once(path, stamp)
        missing = [name for name in order["hooks"] if not callable(getattr(module, name, None))]
        if missing:
            raise LoadError(f"there is no {' and no '.join(missing)}: {path}")
    except LoadError as error:
        return [{"group": group["group"], "failed": str(error)} for group in groups]
    reviewer = Reviewer(module, path, order)
    return [reviewer.review(group) for group in groups]


def meta(path: str, stamp: float, groups: dict[str, list[Item]]) -> dict[str, Any]:
    """Statistics of raw groups, as the file's `get_group_data_meta_info` has them."""
    hook: Callable[[dict[str, list[Item]]], Any] = load_once(path, stamp).get_group_data_meta_info
    told = hook(groups)
    if not isinstance(told, dict):
        raise TypeError(f"get_group_data_meta_info returned a {type(told).__qualname__}, not a dict: {path}")
    try:
        written: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False, default=plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"get_group_data_meta_info returned what is no JSON: {error}: {path}") from error
    return written


def main(arguments: list[str]) -> int:
    """`run FILE`, with the start payload on standard input."""
    match arguments:
        case ["run", path]:
            return _run(path)
        case _:
            sys.stderr.write("usage: python -m rollyard.generator.child run FILE < payload.json\n")
            return 2


def _run(path: str) -> int:
    die_with_parent()
    for stream in (sys.stdout, sys.stderr):
        # Lines of a log, as they come, also when nobody looks at a terminal.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    payload = json.load(sys.stdin)
    try:
        module = load(path)
        problem = _problem(module, path)
        if problem is not None:
            raise LoadError(problem)
        module.run_rollout(payload)
    except LoadError as error:
        traceback.print_exception(error.__cause__ or error)
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _problem(module: ModuleType, path: str) -> str | None:
    """Why a file that was imported is no generator."""
    if not isinstance(getattr(module, "TASK_TYPE", None), str) or not module.TASK_TYPE:
        return f'no TASK_TYPE, which names the task: TASK_TYPE = "my_task": {path}'
    if not callable(getattr(module, "run_rollout", None)):
        return f"no run_rollout(data), which makes the rollouts: {path}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
