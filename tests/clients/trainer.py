"""What a slime trainer and its generator do, in the few calls that matter.

Written from the documented protocol: the generator posts items with `requests`, the trainer starts the
rollout with `requests` and polls for data with `aiohttp`. Nothing here knows of Rollyard.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiohttp
import requests

REQUIRED = ("uid", "instance_id", "messages", "reward", "extra_info")


def start_rollout(base_url: str, **payload: Any) -> dict[str, Any]:
    answer = requests.post(f"{base_url}/start_rollout", json=payload, timeout=10)
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    return told


def make_item(instance_id: str | int, reward: float, text: str = "The answer is 4.") -> dict[str, Any]:
    return {
        "uid": str(uuid.uuid4()),
        "instance_id": instance_id,
        "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": text}],
        "reward": reward,
        "extra_info": {"source": "test"},
    }


def send_item(base_url: str, item: dict[str, Any]) -> dict[str, Any]:
    answer = requests.post(f"{base_url}/buffer/write", json=item, timeout=10)
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    return told


async def get_rollout_data(
    base_url: str, num: int | None = None, timeout: float = 10.0
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    body = {} if num is None else {"batch_size": num}
    limit = aiohttp.ClientTimeout(total=timeout)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.post(f"{base_url}/get_rollout_data", json=body) as answer,
    ):
        answer.raise_for_status()
        envelope = await answer.json()
    items = envelope["data"]["data"]
    for item in items:
        missing = [field for field in REQUIRED if field not in item]
        if missing:
            raise ValueError(f"item without {missing}")
    return items, envelope["data"]["meta_info"]


async def collect(base_url: str, count: int, deadline: float = 20.0) -> list[dict[str, Any]]:
    """Polls until `count` items are there, as a trainer does before a step."""

    async def poll() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        while len(items) < count:
            fresh, _ = await get_rollout_data(base_url)
            items.extend(fresh)
            await asyncio.sleep(0.02)
        return items

    return await asyncio.wait_for(poll(), deadline)
