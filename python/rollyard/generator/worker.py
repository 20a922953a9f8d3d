"""A worker process: makes one rollout at a time with the user's functions.

Whatever these do ends up in the answer: an exception, a value that is no reward, a message that is no JSON.
Only an engine that is gone is waited for instead, because its outage says nothing about a rollout.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np

from rollyard.client.encode import item_json
from rollyard.generator.chat import ChatClient, api_url, chat_client
from rollyard.generator.input import prompt_messages
from rollyard.generator.lifeline import die_with_thread
from rollyard.returned import told

Message: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, Any]
RolloutFunc: TypeAlias = Callable[..., Any]
RewardFunc: TypeAlias = Callable[[Item], Any]

# After the first.
RETRIES = 2
FAILED_REWARD = -1.0
ENGINE_PAUSE_SECS_FIRST = 0.25
ENGINE_PAUSE_SECS_MAX = 10.0

# Fields of an item that stand at its top; all others are extra.
_TOP = ("uid", "instance_id", "prompt", "messages", "reward", "epoch", "extra_info")


@dataclass(frozen=True)
class Craft:
    """What every worker of a pool does."""

    engine_url: str
    sampling_params: dict[str, Any]
    rollout_func: RolloutFunc
    reward_func: RewardFunc


@dataclass(frozen=True, slots=True)
class Task:
    """One rollout to make: a line of the input, and its place in the plan."""

    line: bytes
    uid: str
    epoch: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Made:
    """A rollout as JSON; `failure` says why it is one with the reward of failure."""

    content: bytes
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the user should hear while the work goes on."""

    text: str


def work(pipe: Connection, foreign: list[int], parent: int, craft: Craft) -> None:
    """Answers each `Task` from the pipe with a `Made`, and with any number of `Note` before it."""
    # Files of other workers, which came along with the fork: while one is open, a pipe does not end.
    for file in foreign:
        os.close(file)
    # The parent's handlers came along too. Ctrl-C is for the parent, and ends this process without a word.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    die_with_thread(parent)
    # Python's own generator is seeded anew after a fork; numpy's would be the same in every worker.
    np.random.seed()
    client = chat_client(craft.engine_url)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(make(craft, client, task, lambda text: pipe.send(Note(text))))


def make(craft: Craft, client: Any, task: Task, note: Callable[[str], object]) -> Made:
    """The rollout, or what is left of it after the last retry."""
    failure = ""
    tries = 0
    while tries <= RETRIES:
        try:
            return Made(item_json(rollout(craft, client, task)))
        except (Exception, SystemExit) as error:
            failure, _ = told(error)
        if not wait_for_engine(craft.engine_url, note):
            tries += 1
    return Made(failed_item(task, craft.sampling_params, failure), failure)


def rollout(craft: Craft, client: Any, task: Task) -> Item:
    item = json.loads(task.line)
    params = dict(craft.sampling_params)
    messages, finish_reason = _conversation(craft.rollout_func(client, prompt_messages(item), params))
    item |= {"uid": task.uid, "messages": messages, "finish_reason": finish_reason}
    item["reward"] = _reward(craft.reward_func(item))
    answers = sum(message.get("role") == "assistant" for message in messages)
    return _output(
        item, task, craft.sampling_params, {"round_number": answers, "finish_reason": finish_reason}
    )


def failed_item(task: Task, sampling_params: dict[str, Any], failure: str) -> bytes:
    """A trajectory that came to nothing: the prompt, a reward outside the scale, and the reason."""
    item = json.loads(task.line)
    item |= {"messages": prompt_messages(item), "reward": FAILED_REWARD}
    said = {"round_number": 0, "finish_reason": "error", "error": failure}
    return item_json(_output(item, task, sampling_params, said))


def wait_for_engine(engine_url: str, note: Callable[[str], object]) -> bool:
    """Waits while nobody answers where the engine should be; whether it had to."""
    pause_secs = ENGINE_PAUSE_SECS_FIRST
    waited = False
    with ChatClient(api_url(engine_url), timeout_secs=10.0) as probe:
        while not probe.is_there():
            if not waited:
                note(f"the engine is gone, waiting for it: {engine_url}")
            waited = True
            time.sleep(pause_secs)
            pause_secs = min(2 * pause_secs, ENGINE_PAUSE_SECS_MAX)
    return waited


def _output(item: Item, task: Task, sampling_params: dict[str, Any], said: dict[str, Any]) -> Item:
    # What the user's functions have put into the item is kept, as slime does.
    extra = {name: value for name, value in item.items() if name not in _TOP}
    given = item.get("extra_info")
    if isinstance(given, dict):
        extra |= given
    extra |= sampling_params
    extra |= {"timestamp": str(time.time()), "rollout_index": task.repeat, **said}
    return {
        "uid": task.uid,
        "instance_id": item["instance_id"],
        "messages": item["messages"],
        "reward": item["reward"],
        "extra_info": extra,
        "epoch": task.epoch,
    }


def _conversation(returned: Any) -> tuple[list[Message], Any]:
    """Messages and finish reason of what `rollout_func` returned."""
    messages, finish_reason = returned, None
    if isinstance(returned, tuple) and len(returned) == 2:
        messages, finish_reason = returned
    if not isinstance(messages, list) or not messages:
        shown = "an empty list" if messages == [] else type(returned).__qualname__
        raise TypeError(f"rollout_func must return messages, or (messages, finish_reason), not {shown}")
    return [_message(message) for message in messages], finish_reason


def _message(given: Any) -> Message:
    # Objects of `openai` may stand among the dictionaries.
    dump = getattr(given, "model_dump", None)
    message = dump(exclude_none=True) if dump is not None else given
    if not isinstance(message, dict):
        raise TypeError(f"rollout_func returned a {type(given).__qualname__} among the messages")
    return message


def _reward(given: Any) -> float:
    # A number of numpy or torch is one too.
    value = given.item() if hasattr(given, "item") else given
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"reward_func must return a finite number, not {given!r}")
    return float(value)
