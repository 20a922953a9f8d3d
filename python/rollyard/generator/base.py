"""slime's generator: a data set, an engine, two functions of the user, and a run that the rollouts go to."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from rollyard.generator.chat import api_url, chat_client
from rollyard.generator.input import DataSet
from rollyard.generator.making import Making, Scope
from rollyard.generator.plan import Skips
from rollyard.generator.pool import Pool
from rollyard.generator.rewards import math_reward
from rollyard.generator.turn import query_single_turn
from rollyard.generator.worker import Craft, RewardFunc, RolloutFunc
from rollyard.generator.yard import run_url, yard_client

TASK_TYPE = "math"

# What every request of every generator is sampled with, as slime has it.
SAMPLING_PARAMS: dict[str, Any] = {"top_p": 1}


class BaseGenerator:
    """Makes `num_repeat_per_sample` rollouts of every instance in worker processes, and writes them.

    `rollout_func(client, messages, sampling_params)` returns the messages, or those and a finish reason;
    `reward_func(item)` a number. What raises, or kills its worker, is tried three times and then written with
    the reward -1 and the reason. Every rollout has a uid by its place in the plan, so a generator that was
    killed and starts again makes only what is missing. `skip_instance_ids` skips an instance in one epoch for
    each mention. `queue_size` is taken for slime's sake: no more is held than is being worked on.
    """

    def __init__(
        self,
        remote_engine_url: str,
        remote_buffer_url: str,
        num_repeat_per_sample: int = 1,
        queue_size: int = 1_000_000,
        num_process: int = 10,
        task_type: str = TASK_TYPE,
        max_tokens: int = 4096,
        num_repeats: int = 1,
        skip_instance_ids: Iterable[object] | None = None,
    ) -> None:
        self.remote_engine_url = remote_engine_url
        self.remote_buffer_url = remote_buffer_url
        self.num_repeat_per_sample = _positive("num_repeat_per_sample", num_repeat_per_sample)
        self.queue_size = queue_size
        self.num_process = _positive("num_process", num_process)
        self.task_type = task_type
        self.max_tokens = _positive("max_tokens", max_tokens)
        self.num_repeats = _positive("num_repeats", num_repeats)
        # Of the engine. A wrong URL is told here, and not by a thousand workers.
        self.client = chat_client(api_url(remote_engine_url))
        self._yard = yard_client(remote_buffer_url)
        # Over `SAMPLING_PARAMS`.
        self.sampling_params: dict[str, Any] = {}
        self._skips = Skips(skip_instance_ids)
        self._epochs = itertools.count()

    @classmethod
    def from_payload(cls, data: Mapping[str, Any]) -> BaseGenerator:
        """Made by the payload that `/start_rollout` was sent; numbers in it may be texts."""
        params = dict(data.get("sampling_params") or {})
        generator = cls(
            data["remote_engine_url"],
            run_url(data["remote_buffer_url"], data.get("run")),
            num_repeat_per_sample=int(data.get("num_repeat_per_sample") or 1),
            num_process=int(data.get("num_process") or 100),
            task_type=data.get("task_type") or TASK_TYPE,
            max_tokens=int(params.get("max_tokens") or data.get("max_tokens") or 4096),
            skip_instance_ids=data.get("skip_instance_ids"),
        )
        generator.sampling_params = params
        return generator

    def entry(
        self, input_file: str, rollout_func: RolloutFunc, reward_func: RewardFunc, num_epoch: int = 1
    ) -> None:
        """Goes `num_epoch` times through the data set, or `num_repeats` times as often."""
        self._make(input_file, rollout_func, reward_func, num_epoch * self.num_repeats)

    def run(self, input_file: str, rollout_func: RolloutFunc, reward_func: RewardFunc) -> str:
        """Goes `num_repeats` times through the data set; "finished" when all is written."""
        self._make(input_file, rollout_func, reward_func, self.num_repeats)
        return "finished"

    def _make(self, input_file: str, rollout_func: RolloutFunc, reward_func: RewardFunc, epochs: int) -> None:
        params = {**SAMPLING_PARAMS, **self.sampling_params, "max_tokens": self.max_tokens}
        craft = Craft(self.remote_engine_url, params, rollout_func, reward_func)
        scope = Scope(list(itertools.islice(self._epochs, epochs)), self.num_repeat_per_sample, self._skips)
        with DataSet(input_file) as data, _leaves_on_sigterm(), Pool(self.num_process, craft) as pool:
            Making(self._yard, data, scope, craft).run(pool)


def run_rollout(data: dict[str, Any]) -> None:
    """The task `math`: one answer to each prompt, right or wrong by its `label`."""
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], query_single_turn, math_reward, int(data.get("num_epoch") or 1))


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} is {value}, but must be 1 or more")
    return value


@contextmanager
def _leaves_on_sigterm() -> Iterator[None]:
    """SIGTERM unwinds the stack, so that workers are ended. A handler of the user's is left alone."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(*_: object) -> NoReturn:
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
