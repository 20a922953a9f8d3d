"""A straightforward executor of workflows, as one would write it in an afternoon with asyncio and httpx.

It does what ours does: many episodes at once, a failed one tried again, capacity by the same formula,
counters, the version pinned before a request, and each episode as a tensor dict, padded and concatenated.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np

ATTEMPTS = 3
# httpx looks through all its connections for every request: with 5,000 at once it answers a few a second. So
# this many are on their way at a time, which is where it is fastest, and the other episodes wait their turn.
CONNECTIONS = 8


class Engine:
    """SGLang's `/generate` in token ids."""

    def __init__(self, url: str) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        self.turn = asyncio.Semaphore(CONNECTIONS)
        self.client = httpx.AsyncClient(base_url=url, timeout=None, limits=limits)
        self.version = 0

    async def agenerate(self, input_ids: list[int], new_tokens: int, seed: int) -> dict[str, Any]:
        version = self.version
        begin = time.perf_counter()
        params = {"max_new_tokens": new_tokens, "temperature": 1.0, "sampling_seed": seed}
        body = {"input_ids": input_ids, "sampling_params": params, "return_logprob": True, "stream": False}
        async with self.turn:
            answer = await self.client.post("/generate", json=body)
        answer.raise_for_status()
        meta = (said := answer.json())["meta_info"]
        logprobs = [entry[0] for entry in meta["output_token_logprobs"]]
        return {
            "output_tokens": said["output_ids"],
            "output_logprobs": logprobs,
            "version": int(meta.get("weight_version", version)),
            "stop_reason": meta["finish_reason"]["type"],
            "latency": time.perf_counter() - begin,
        }


async def arun_episode(engine: Engine, data: dict[str, Any], new_tokens: int, seed: int) -> dict[str, Any]:
    prompt = data["input_ids"]
    said = await engine.agenerate(prompt, new_tokens, seed)
    output = said["output_tokens"]
    reward = float(sum(token % 2 == 0 for token in output))
    given = [0] * len(prompt)
    return {
        "input_ids": np.array([prompt + output], dtype=np.int32),
        "attention_mask": np.ones((1, len(prompt) + len(output)), dtype=bool),
        "loss_mask": np.array([given + [1] * len(output)], dtype=np.int32),
        "logprobs": np.array([[0.0] * len(prompt) + said["output_logprobs"]], dtype=np.float32),
        "versions": np.array([[-1] * len(prompt) + [said["version"]] * len(output)], dtype=np.int32),
        "rewards": np.array([reward], dtype=np.float32),
    }


class Executor:
    def __init__(
        self, engine: Engine, *, max_concurrent: int, batch: int, max_head_offpolicyness: int
    ) -> None:
        self.engine = engine
        self.max_concurrent = max_concurrent
        self.batch = batch
        self.max_head_offpolicyness = max_head_offpolicyness
        self.accepted = self.rejected = self.failed = self.running = 0
        self.room = asyncio.Condition()

    def capacity(self) -> int:
        owed = (self.max_head_offpolicyness + self.engine.version + 1) * self.batch
        return min(self.max_concurrent - self.running, owed - (self.accepted + self.running))

    async def rollout_batch(self, prompts: Sequence[dict[str, Any]], new_tokens: int) -> dict[str, Any]:
        tasks = []
        for task_id, data in zip(itertools.count(), prompts):
            async with self.room:
                await self.room.wait_for(lambda: self.capacity() > 0)
            self.running += 1
            tasks.append(asyncio.create_task(self.task(task_id, data, new_tokens)))
        done = [result for result in await asyncio.gather(*tasks) if result is not None]
        return concat(done)

    async def task(self, task_id: int, data: dict[str, Any], new_tokens: int) -> dict[str, Any] | None:
        result = None
        for attempt in range(ATTEMPTS):
            try:
                result = await arun_episode(self.engine, data, new_tokens, task_id)
                break
            except httpx.HTTPError:
                await asyncio.sleep(0.2 * 2**attempt)
        else:
            self.failed += 1
        self.running -= 1
        self.accepted += result is not None
        async with self.room:
            self.room.notify()
        return result


def concat(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        return {}
    width = max(part["input_ids"].shape[1] for part in parts)
    joined: dict[str, Any] = {}
    for key in parts[0]:
        rows = [
            part[key] if part[key].ndim == 1 else np.pad(part[key], ((0, 0), (0, width - part[key].shape[1])))
            for part in parts
        ]
        joined[key] = np.concatenate(rows)
    return joined
