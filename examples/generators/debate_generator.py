"""Answer, doubt, answer again: two turns, and every hook that a generator file can have.

The reward is that of the second answer. The hooks see to it that only the second answer is trained on, that a
group has both right and wrong ones, and that changing one's mind for the better counts a little more.
"""

from typing import Any

from rollyard.generator import BaseGenerator, hooks, math_reward, query_single_turn, register

Item = dict[str, Any]
Group = tuple[str, list[Item]]

DOUBT = {"role": "user", "content": "A colleague has another result. Check yours, and answer again."}


def debate(client: Any, messages: list[dict[str, Any]], params: dict[str, Any]) -> Any:
    first, _ = query_single_turn(client, messages, params)
    return query_single_turn(client, [*first, DOUBT], params)


def judge(item: Item) -> float:
    # What is put into the item here is in its extra_info later.
    item["first_reward"] = math_reward(item | {"messages": item["messages"][:-2]})
    return math_reward(item)


@register("debate")
def run_rollout(data: dict[str, Any]) -> None:
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], debate, judge, int(data.get("num_epoch", 1)))


@register.hook
def get_group_data_meta_info(groups: dict[str, list[Item]]) -> dict[str, Any]:
    items = [item for group in groups.values() for item in group]
    swayed = sum(item["extra_info"].get("first_reward", item["reward"]) != item["reward"] for item in items)
    return hooks.get_group_data_meta_info(groups) | {"swayed": swayed}


@register.hook
def is_valid_group(group: Group, min_valid_group_size: int, task_type: str) -> tuple[bool, bool]:
    rewards = {item["reward"] for item in group[1]}
    finished = len(group[1]) >= min_valid_group_size
    return finished and {0, 1} <= rewards, finished


@register.hook
def transform_group(group: Group, task_type: str) -> Group:
    for item in group[1]:
        answers = [message for message in item["messages"] if message["role"] == "assistant"]
        for message in answers[:-1]:
            message["step_loss_mask"] = 0
    return group


@register.hook
def filter_item(item: Item, task_type: str) -> bool:
    return hooks.filter_item(item, task_type) and item["extra_info"]["finish_reason"] != "length"


@register.hook
def normalize_group_data(group: Group) -> Group:
    instance_id, items = hooks.normalize_group_data(group)
    for item in items:
        if item["extra_info"].get("first_reward", 1) < item["raw_reward"]:
            item["reward"] *= 1.1
    return instance_id, items


@register.hook
def pad_group_data(group: Group, group_size: int) -> Group:
    return hooks.pad_group_data(group, group_size)
