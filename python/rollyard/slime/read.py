"""`get_rollout_data`: a plain read, as slime's own trainer does it.

What it returns is taken: the server acks for the reader as soon as the bytes have arrived. A trainer that may
die wants `generate_rollout`, which leases.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, cast
from urllib.parse import quote

from rollyard import errors
from rollyard.client.address import Address
from rollyard.client.awaited import AsyncClient
from rollyard.client.calls import post
from rollyard.client.flow import Flow, Pause, ask
from rollyard.client.site import Site

REQUIRED = ("uid", "instance_id", "messages", "reward", "extra_info")

# A wait is cut into calls of this length, because what lies between may end an idle one.
POLL_SECS_MAX = 30.0
# After a "no" that came early, as from a server that is about to stop.
PAUSE_SECS = 0.5


class RolloutTimeoutError(errors.WaitTimeoutError, asyncio.TimeoutError):
    """Too few rollouts were ready in time. Nothing was taken."""


@cache
def client_error() -> type[errors.NotReachableError]:
    """`ClientError`: ours, and also aiohttp's where that is installed, which slime's programs catch."""
    bases: tuple[type, ...] = (errors.NotReachableError,)
    try:
        import aiohttp
    except ImportError:
        pass
    else:
        bases += (aiohttp.ClientError,)
    about = {"__module__": "rollyard.slime", "__doc__": "The server is not reached, or did not say yes."}
    return cast(type[errors.NotReachableError], type("ClientError", bases, about))


async def get_rollout_data(
    api_base_url: str, num: int | None = None, timeout: float = 100.0
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Takes all groups that are ready, or as few as give `num` rollouts, with their statistics.

    Raises `ClientError`, also an `aiohttp.ClientError`, if the server is not reached or refuses; `ValueError`
    if a rollout lacks a field; `RolloutTimeoutError`, an `asyncio.TimeoutError`, after `timeout` seconds.
    """
    address = Address.of(api_base_url)
    async with AsyncClient(address.server, run=address.run, retries=0) as client:
        try:
            data = await client._do(read(client._site, num, timeout))
        except errors.NoAnswerError as error:
            raise RolloutTimeoutError(str(error)) from error
        except (errors.NotReachableError, errors.ServerError) as error:
            raise client_error()(str(error)) from error
    if data is None:
        wanted = "any group" if num is None else f"{num} rollouts"
        raise RolloutTimeoutError(f"not ready within {timeout:g} seconds: {wanted} of {address.shown}")
    items: list[dict[str, Any]] = data["data"]
    for item in items:
        check(item)
    return items, data.get("meta_info") or {}


def read(site: Site, num: int | None, wait_secs: float) -> Flow[Mapping[str, Any] | None]:
    deadline = time.monotonic() + wait_secs
    path = f"/runs/{quote(site.run, safe='')}/get_rollout_data"
    while True:
        asked_at = time.monotonic()
        secs = min(max(0.0, deadline - asked_at), POLL_SECS_MAX)
        asked = {"batch_size": num, "timeout": secs, "wait": True}
        answer = yield from ask(site, post(path, asked, wait_secs=secs))
        told = answer.json(site)
        if told["success"]:
            data: Mapping[str, Any] = told["data"]
            return data
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        if time.monotonic() - asked_at < secs / 2:
            yield Pause(min(PAUSE_SECS, left))


def check(item: Mapping[str, Any]) -> None:
    missing = [name for name in REQUIRED if name not in item]
    if missing:
        raise ValueError(f"rollout {item.get('uid')!r} has no {', no '.join(missing)}")
