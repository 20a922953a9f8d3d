"""The reward of a mathematical answer, by Rollyard's own verifier."""

from __future__ import annotations

from typing import Any

from rollyard._rollyard import extract_answer, verify_answer


def math_reward(item: dict[str, Any]) -> float:
    """1 if the last message means the same as `item["label"]`, else 0."""
    last = item["messages"][-1]
    if last["role"] != "assistant":
        raise ValueError(f"the last message is not the assistant's, but of the role {last['role']!r}")
    return get_deepscaler_rule_based_reward(last["content"], item["label"])


def get_deepscaler_rule_based_reward(response: str | None, label: object) -> float:
    """1 if the response means the same as the label, or as one of them, else 0."""
    answer = extract_answer(response) if response else None
    if answer is None:
        return 0.0
    truths = [str(each) for each in (label if isinstance(label, (list, tuple)) else [label])]
    # A truth may be a whole solution.
    return float(any(verify_answer(answer, extract_answer(truth) or truth) for truth in truths))


get_rule_based_math_reward = math_reward
