"""Workflows and functions as users write them, good and bad; worker processes import them by name."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import numpy as np

import rollyard
from rollyard import stats, workflow_context
from testengine import ask


def tensors(response: rollyard.ModelResponse, reward: float) -> dict[str, Any]:
    return rollyard.Interaction(response, reward).to_tensor_dict()


class Plain(rollyard.RolloutWorkflow):
    """Samples once; the reward is what the data says, or the task's number."""

    def __init__(self, max_new_tokens: int = 8, **more: Any) -> None:
        self.max_new_tokens = max_new_tokens
        self.more = more

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any] | None:
        context = workflow_context.get()
        if data.pop("reject", False):
            return None
        request = ask(*data.get("tokens", [1, 2, 3]), max_new_tokens=self.max_new_tokens, seed=context.seed)
        response = await engine.agenerate(request)
        reward = float(data.get("reward", context.task_id or 0))
        stats.get().scalar(reward=reward)
        return tensors(response, reward)


class Told(rollyard.RolloutWorkflow):
    """Returns which episode its child task and its child thread believe to be in."""

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
        async def in_task() -> Any:
            await asyncio.sleep(0)
            return workflow_context.get()

        by_task, by_thread = await asyncio.gather(
            asyncio.create_task(in_task()), asyncio.to_thread(workflow_context.get)
        )
        assert by_task == by_thread == workflow_context.get()
        scope = ["rollout", "eval-rollout"].index(workflow_context.stat_scope())
        told = [by_task.task_id, by_task.sample_idx, by_task.attempt, by_task.is_eval, by_task.seed, scope]
        row = np.array([told], np.int32)
        return {"input_ids": row, "attention_mask": row * 0 + 1, "process": np.array([os.getpid()])}


class Bad(rollyard.RolloutWorkflow):
    """Goes wrong in the way that the data says."""

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> Any:
        how = data["how"]
        if how == "raise":
            raise LookupError("no such thing")
        if how == "exit":
            raise SystemExit("user code wants to stop the world")
        if how == "hang":
            await asyncio.sleep(3600)
        if how == "die" and workflow_context.get().attempt < data.get("times", 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "print":
            print("x" * 100_000, flush=True)
            os.write(1, b"more of it\n")
        if how == "return":
            return (
                [1, 2, 3]
                if data["what"] == "list"
                else {"input_ids": "text"}
                if data["what"] == "text"
                else {}
            )
        reward = float("nan") if how == "nan" else 1.0
        return tensors(await engine.agenerate(ask()), reward)


# What Bad is told to do, and what is said of it.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"how": "raise"}, r"LookupError: no such thing \(.*yarns.py:\d+, in arun_episode\)"),
    ({"how": "exit"}, "SystemExit: user code wants to stop the world"),
    (
        {"how": "return", "what": "list"},
        "returned a list, but must return a dict of tensors, a dict of interactions",
    ),
    ({"how": "return", "what": "text"}, "returned a dict whose 'input_ids' is a str"),
    ({"how": "return", "what": "nothing"}, "returned an empty dict"),
    ({"how": "nan"}, "the reward of sample 0 of the workflow is NaN"),
]


class Talk(rollyard.RolloutWorkflow):
    """Returns two interactions."""

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
        answers = [await engine.agenerate(ask(1, 2, max_new_tokens=n)) for n in (3, 5)]
        return {f"turn-{n}": rollyard.Interaction(answer, float(n)) for n, answer in enumerate(answers)}


class Chats(rollyard.RolloutWorkflow):
    """Speaks in messages."""

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": "user", "content": data["question"]}]
        response = await engine.agenerate(rollyard.ModelRequest(messages=messages))
        return {"only": rollyard.Interaction(response, 0.25, messages)}


class Agent:
    """No workflow by itself."""

    async def run(self, data: dict[str, Any], **kwargs: Any) -> float:
        return 1.0


class NotAsync(rollyard.RolloutWorkflow):
    def arun_episode(self, engine: Any, data: dict[str, Any]) -> None:  # type: ignore[override]
        return None


NOT_A_CLASS = 7


def length_reward(
    prompt: str,
    completion: str,
    prompt_ids: list[int],
    completion_ids: list[int],
    *,
    answer: Any = None,
    **data: Any,
) -> Any:
    if answer == "raise":
        raise ValueError("cannot be judged")
    if answer == "nan":
        return np.float32("nan")
    if answer == "hang":
        time.sleep(3600)
    return np.float64(len(completion_ids)) if answer is None else answer


async def where() -> int:
    return os.getpid()


def reward_of_length(
    prompt: str, completion: str, prompt_ids: list[int], completion_ids: list[int], *, bonus: int, **data: Any
) -> int:
    """As AReaL calls rewards: the texts, their tokens, and the data by name."""
    return len(completion_ids) + bonus


def reward_nan(*args: Any, **data: Any) -> float:
    return float("nan")


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number
