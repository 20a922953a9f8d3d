"""How the server runs generator files: in processes of their own, so that their crash is an event.

Run by Rollyard, never by hand, in two ways.

`python -m rollyard.generator.child run FILE` makes rollouts. It reads the start payload as JSON from standard
input, to the end, and calls `run_rollout(payload)` of the file. It exits with 0 when that returns and with 1
after an exception, whose traceback is on standard error. It dies with its parent.

The functions below are called through a worker process (`python -m rollyard.host`), by the names
`rollyard.generator.child.inspect_file`, `.review` and `.meta`. `stamp` is the time at which the file was
changed, in seconds as `os.stat` has it: another stamp loads the file again.

`inspect_file(path)` returns

    {"task_type": str | None, "hooks": [names], "problem": str | None}

where `hooks` are those of `HOOKS` that the file defines, and `problem` says why the file is of no use; it
names the file. It never raises.

`review(path, stamp, order, groups)` judges and shapes groups. `order` is

    {"task_type": str, "group_size": int, "min_valid_group_size": int, "valid_items": int,
     "hooks": [names of hooks to use], "skip": [names of steps whose knob is "none"],
     "defaults": {"reward_min": float, "reward_max": float}}

and a group is

    {"group": int, "instance_id": str, "stage": "growing" | "full" | "timed_out" | "closed",
     "min_size": int, "items": [item, …]}

It returns a list as long as `groups` and in its order, each one of

    {"group": int, "waiting": true}
    {"group": int, "invalid": str}            the reason, for the books
    {"group": int, "too_few_valid": true}     fewer than `valid_items` passed filter_item
    {"group": int, "failed": str}             a hook raised, or returned what cannot be used
    {"group": int, "rows": [{"member": int | null, "set": {field: value}, "unset": [field, …]}, …]}

A row is the item `items[member]` with the fields of `set` put in place of its own, whole, and those of
`unset` taken away. The first row of a member keeps its uid. Every further one is a copy: its `set` has
`"padded": true` and a uid of its own, `"{uid}#pad{k}"` for the k-th copy in the group unless the hook gave
one. A row that a hook made from nothing has `member` null and is all in `set`. Every row has a finite reward
and every uid is there once. There is no row twice, and there is at least one.

The steps are is_valid_group, transform_group, filter_item, normalize_group_data and pad_group_data, in this
order. Those in `hooks` are the file's, those in `skip` are left out, the rest are the defaults of
`rollyard.generator.hooks`. With a custom transform_group and none of the three after it, these are left out.

`meta(path, stamp, groups)` calls `get_group_data_meta_info({instance_id: [item, …]})` and returns the dict
that it gave; anything else is a `TypeError` that says what it was.
"""

from __future__ import annotations

import sys
from typing import Any

# In the order in which they are applied, `get_group_data_meta_info` first.
HOOKS = (
    "get_group_data_meta_info",
    "is_valid_group",
    "transform_group",
    "filter_item",
    "normalize_group_data",
    "pad_group_data",
)

Item = dict[str, Any]


def inspect_file(path: str) -> dict[str, Any]:
    """What a generator file offers, or what is wrong with it."""
    raise NotImplementedError


def review(path: str, stamp: float, order: dict[str, Any], groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What becomes of each group. One that fails leaves the others alone."""
    raise NotImplementedError


def meta(path: str, stamp: float, groups: dict[str, list[Item]]) -> dict[str, Any]:
    """Statistics of raw groups, as the file's `get_group_data_meta_info` has them."""
    raise NotImplementedError


def main(arguments: list[str]) -> int:
    """`run FILE`, with the start payload on standard input."""
    raise NotImplementedError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
