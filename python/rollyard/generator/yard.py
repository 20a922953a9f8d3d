"""Where a generator's rollouts go: written until the server has them, however long it is away."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import httpx

from rollyard.client import calls
from rollyard.client.address import Address
from rollyard.client.blocking import Client
from rollyard.client.encode import Line
from rollyard.client.flow import PAUSE_SECS_FIRST, PAUSE_SECS_MAX
from rollyard.client.persist import may_pass
from rollyard.client.results import RejectedRollout, WriteManyResult
from rollyard.errors import RollyardError

T = TypeVar("T")

# No room, or not so fast: the line is good, and is tried again.
_LATER = ("full", "paced")
# Written before, with other bytes: by this generator, before it was killed.
_DONE = "uid_taken"


def yard_client(buffer_url: str) -> Client:
    """A client for `http://host:8889`, or for a run at `http://host:8889/runs/NAME`."""
    address = Address.of(buffer_url)
    return Client(address.server, run=address.run, retries=2)


def run_url(buffer_url: str, run: str | None) -> str:
    """The URL of a run, by the server's and its name; one that names a run already stays."""
    if not run or "/runs/" in httpx.URL(buffer_url).path:
        return buffer_url
    return f"{buffer_url.rstrip('/')}/runs/{run}"


class YardWriter:
    """Writes rollouts. An outage of the server is waited for, and said."""

    def __init__(self, client: Client, say: Callable[[str], object]) -> None:
        self._client = client
        self._say = say

    def known(self, uids: list[str]) -> set[str]:
        """Those of the uids that were written before."""
        return self._persist(lambda: self._client.known(uids))

    def write(self, lines: list[Line]) -> list[RejectedRollout]:
        """Returns when every line is stored or refused for good; those that are refused."""
        refused: list[RejectedRollout] = []
        by_uid = {line.uid: line for line in lines}
        for attempt in itertools.count():
            told = self._persist(partial(self._send, lines))
            refused += (one for one in told.rejected if one.code not in _LATER and one.code != _DONE)
            put_off = [one for one in told.rejected if one.code in _LATER]
            if not put_off:
                break
            self._say(f"the run puts rollouts off, trying again: {put_off[0].message}")
            lines = [by_uid[str(one.uid)] for one in put_off]
            time.sleep(_pause_secs(attempt))
        return refused

    def _send(self, lines: list[Line]) -> WriteManyResult:
        return self._client._do(calls.write_encoded(self._client._site, lines, None))

    def _persist(self, call: Callable[[], T]) -> T:
        for attempt in itertools.count():
            try:
                return call()
            except RollyardError as trouble:
                if not may_pass(trouble):
                    raise
                self._say(f"nothing is written for now, trying again: {trouble}")
            time.sleep(_pause_secs(attempt))
        raise AssertionError("count() does not end")


def _pause_secs(attempt: int) -> float:
    return min(PAUSE_SECS_FIRST * 2.0 ** min(attempt, 10), PAUSE_SECS_MAX)
