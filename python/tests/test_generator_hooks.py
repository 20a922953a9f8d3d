"""The default hooks in Python give what the server gives."""

from __future__ import annotations

import copy
import math
import pathlib
import random
from typing import Any

import pytest

import rollyard
from rollyard.generator import child, hooks
from serving import Serve

SIZE = 6
Groups = dict[str, list[dict[str, Any]]]

KNOBS: dict[str, dict[str, Any]] = {
    "slime's": {},
    "math": {"task_type": "math", "validate": "answered"},
    "centred and masked": {"normalize": "center", "pad": "mask"},
    "as they came": {"validate": "sized", "filter": "none", "normalize": "none", "pad": "none"},
    "another scale": {"reward_min": -1.0, "reward_max": 0.5},
}


def make_groups(seed: int) -> Groups:
    """Groups of all sizes, with rewards on the scale and off it, equal and not, with answers and without."""
    chance = random.Random(seed)
    groups: Groups = {}
    for number in range(60):
        name = f"i{number}"
        rewards: list[float] = chance.choice(
            [[0, 1], [0.0], [1.0], [0.25, 0.5, 1], [-1, 0, 1], [0.1, 0.7, 2.5]]
        )
        texts = chance.choice([["yes", "no"], ["yes", "no", "", "  "]])
        groups[name] = [
            {
                "uid": f"{name}:0:{n}",
                "instance_id": name,
                "messages": [{"role": "assistant", "content": chance.choice(texts)}],
                "reward": chance.choice(rewards),
                "extra_info": {"n": n},
            }
            for n in range(chance.choice([3, 4, 5, SIZE, SIZE, SIZE]))
        ]
    return groups


def told(groups: Groups, knobs: dict[str, Any]) -> list[dict[str, Any]]:
    """What `review` makes of the groups without any hook of a file."""
    order = {
        "task_type": knobs.get("task_type", "default"),
        "group_size": SIZE,
        "min_valid_group_size": SIZE,
        "valid_items": math.ceil(0.5 * SIZE),
        "hooks": [],
        "skip": [],
        "defaults": {"reward_min": 0.0, "reward_max": 1.0} | knobs,
    }
    sent = [
        {
            "group": number,
            "instance_id": name,
            "stage": "full" if len(items) == SIZE else "closed",
            "min_size": SIZE if len(items) == SIZE else math.ceil(0.6 * SIZE),
            "items": items,
        }
        for number, (name, items) in enumerate(groups.items())
    ]
    before = copy.deepcopy(sent)
    path = pathlib.Path(hooks.__file__)
    answers = child.review(str(path), path.stat().st_mtime, order, sent)
    assert sent == before, "hooks work on copies"
    return answers


def rows_of(group: list[dict[str, Any]], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an answer, put together as the server does."""
    rows = []
    for row in answer["rows"]:
        item = dict(group[row["member"]]) | row["set"]
        rows.append({name: value for name, value in item.items() if name not in row["unset"]})
    return rows


@pytest.mark.parametrize("name", KNOBS)
def test_a_group_comes_out_as_the_server_gives_it(serve: Serve, name: str) -> None:
    yard, knobs, groups = serve(), KNOBS[name], make_groups(7)
    ratios = {"min_timeout_group_size_ratio": 0.6, "min_valid_item_size_ratio": 0.5}
    with rollyard.Client(yard.url) as client:
        client.configure(group_size=SIZE, **ratios, **knobs)
        client.write_many(item for items in groups.values() for item in items).raise_for_rejected()
        for instance_id, items in groups.items():
            if len(items) < SIZE:
                client.close_group(instance_id)
        lease = client.lease()
        assert lease is not None
        there = {group.instance_id: group.rollouts for group in lease}
        reasons = client.books().dropped_by_reason
    answers = dict(zip(groups, told(groups, knobs), strict=True))
    assert there.keys() == {instance_id for instance_id, answer in answers.items() if "rows" in answer}
    assert len(there) > 5
    for instance_id, rollouts in there.items():
        rows = rows_of(groups[instance_id], answers[instance_id])
        for row, rollout in zip(rows, rollouts, strict=True):
            # Written by whoever writes the row, where no step has.
            row.setdefault("raw_reward", float(row["reward"]))
            assert row.pop("reward") == pytest.approx(rollout.pop("reward"), abs=1e-9)
            assert row == rollout
    if name == "slime's":
        dropped = [answer for answer in answers.values() if "rows" not in answer]
        assert all(answer.keys() & {"invalid", "too_few_valid"} for answer in dropped)
        assert {"no_variance", "too_few_in_time", "too_few_valid"} <= reasons.keys()


def test_the_numbers_of_raw_groups_are_those_of_the_server(serve: Serve) -> None:
    yard, groups = serve(), make_groups(3)
    with rollyard.Client(yard.url) as client:
        client.configure(group_size=SIZE)
        client.write_many(item for items in groups.values() for item in items)
        lease = client.lease()
        assert lease is not None
    meta = dict(lease.meta)
    assert meta.pop("finished_groups")
    assert hooks.get_group_data_meta_info(groups) == pytest.approx(meta)


def test_a_growing_group_waits_for_what_may_still_come() -> None:
    for items, expected in (
        ([0, 1], (False, False)),
        ([0, 0, 0], (False, True)),
        ([0, 0, 1], (True, True)),
    ):
        group = ("a", [{"reward": reward, "messages": []} for reward in items])
        assert hooks.is_valid_group(group, 3) == expected, items


def test_rewards_off_the_scale_are_neither_counted_nor_changed() -> None:
    items = [{"reward": reward} for reward in (0.0, 1.0, -1.0)]
    _, made = hooks.normalize_group_data(("a", items))
    assert [item["reward"] for item in made] == pytest.approx([-1.0, 1.0, -1.0])
    assert [item["raw_reward"] for item in made] == [0.0, 1.0, -1.0]


def test_a_group_of_less_than_half_cannot_be_padded() -> None:
    items = [{"uid": "a", "reward": 1.0}]
    assert len(hooks.pad_group_data(("a", copy.deepcopy(items)), 2)[1]) == 2
    with pytest.raises(hooks.CannotPadError, match="1 items cannot be padded to 3"):
        hooks.pad_group_data(("a", items), 3)
