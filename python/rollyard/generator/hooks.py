"""The steps that a group passes through where a generator file has no hook of its own.

The server has the same in Rust and uses that; these are for hooks that want to add to a step, not to replace
it. They give what the server gives: `tests/test_generator_hooks.py` compares them. A group is
`(instance_id, items)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Item: TypeAlias = dict[str, Any]
Group: TypeAlias = tuple[Any, list[Item]]

# Below this standard deviation rewards count as equal; above it, it keeps the quotient finite.
STD_EPSILON = 1e-8


class CannotPadError(ValueError):
    """The group is too short to be padded by copies of itself."""


def get_group_data_meta_info(temp_data: Mapping[Any, Sequence[Item]]) -> dict[str, Any]:
    """Counts, and the spread of the raw rewards; `reward_std` is that of a sample (n - 1)."""
    rewards = [item["reward"] for items in temp_data.values() for item in items]
    count = len(rewards)
    mean = sum(rewards) / count if count else 0.0
    squares = sum((reward - mean) ** 2 for reward in rewards)
    return {
        "total_samples": count,
        "num_groups": len(temp_data),
        "avg_group_size": count / len(temp_data) if temp_data else 0.0,
        "avg_reward": mean,
        "reward_min": min(rewards, default=0.0),
        "reward_max": max(rewards, default=0.0),
        "reward_std": math.sqrt(squares / (count - 1)) if count > 1 else 0.0,
    }


def is_valid_group(
    group: Group | list[Item], min_valid_group_size: int, task_type: str = "default"
) -> tuple[bool, bool]:
    """Whether the group can be trained on, and whether it is finished.

    Finished is a matter of size. Beyond that, rewards must not all be equal; for the task `math`, enough
    members must end in an answer instead.
    """
    items = group if isinstance(group, list) else group[1]
    finished = len(items) >= min_valid_group_size
    if task_type == "math":
        return finished and sum(map(is_answered, items)) >= min_valid_group_size, finished
    return finished and is_varied(items), finished


def is_varied(items: Sequence[Item]) -> bool:
    """Whether any two rewards differ."""
    return any(item["reward"] != items[0]["reward"] for item in items)


def is_answered(item: Item) -> bool:
    """Whether the last message has text in it."""
    content = item["messages"][-1].get("content") if item["messages"] else None
    return bool(content.strip()) if isinstance(content, str) else isinstance(content, list) and content != []


def is_valid_reward(reward: float) -> bool:
    """Whether the reward is on slime's scale."""
    return 0.0 <= reward <= 1.0


def filter_item(
    item: Item, task_type: str = "default", *, reward_min: float = 0.0, reward_max: float = 1.0
) -> bool:
    """Whether the item has all that a trainer needs, and a reward on the scale."""
    reward = item.get("reward")
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        return False
    on_scale = reward_min <= reward <= reward_max
    return on_scale and "instance_id" in item and isinstance(item.get("messages"), list)


def normalize_group_data(
    group: Group,
    epsilon: float = STD_EPSILON,
    algo: str = "grpo",
    *,
    reward_min: float = 0.0,
    reward_max: float = 1.0,
) -> Group:
    """Rewards relative to each other; `raw_reward` keeps what they were.

    `grpo` is `(r - mean) / (std + epsilon)`, all 0 where the standard deviation is below `epsilon`; `center`
    is `r - mean`. A reward off the scale is neither counted nor changed.
    """
    if algo not in ("grpo", "center"):
        raise ValueError(f"algo is {algo!r}, but must be 'grpo' or 'center'")
    instance_id, items = group
    valid = [item for item in items if reward_min <= item["reward"] <= reward_max]
    for item in items:
        # A writer that normalised for itself knows better what the raw reward was.
        item.setdefault("raw_reward", item["reward"])
    # Measured from the first, because the plain mean of equal rewards is off by a rounding error.
    origin = valid[0]["reward"] if valid else 0.0
    mean = sum(item["reward"] - origin for item in valid) / len(valid) if valid else 0.0
    deviations = [(item["reward"] - origin) - mean for item in valid]
    if algo == "grpo" and valid:
        std = math.sqrt(sum(each * each for each in deviations) / len(valid))
        deviations = [0.0 if std < epsilon else each / (std + epsilon) for each in deviations]
    for item, reward in zip(valid, deviations, strict=True):
        item["reward"] = reward
    return instance_id, items


def pad_group_data(group: Group, group_size: int) -> Group:
    """Every reward times `group_size / n`; then copies of the first items, which share their rewards.

    So the sum of the rewards is what it would be with empty rows for padding. An item is shared once: a group
    of less than half the size is a `CannotPadError`.
    """
    instance_id, items = group
    missing = max(0, group_size - len(items))
    if missing > len(items):
        raise CannotPadError(f"{len(items)} items cannot be padded to {group_size} by one copy of each")
    scale = group_size / len(items)
    for item in items:
        item["reward"] *= scale
    for item in items[:missing]:
        item["reward"] /= 2.0
    return instance_id, items + [copy_of(item, number) for number, item in enumerate(items[:missing], 1)]


def mask_group_data(group: Group, group_size: int) -> Group:
    """Adds rows that weigh nothing and touches no reward: right for losses that are a mean over tokens."""
    instance_id, items = group
    if not items:
        raise CannotPadError(f"no items can be padded to {group_size}")
    missing = range(1, group_size - len(items) + 1)
    fillers = [copy_of(items[(number - 1) % len(items)], number) for number in missing]
    for filler in fillers:
        filler |= {"reward": 0.0, "loss_weight": 0.0}
    return instance_id, items + fillers


def copy_of(item: Item, number: int) -> Item:
    """The `number`-th copy that pads a group, under a uid of its own."""
    return {**item, "uid": f"{item['uid']}#pad{number}", "padded": True, "loss_weight": 1.0}
