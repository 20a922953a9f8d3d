"""What a trainer has begun with its run, and what it still owes the books.

Kept for each process and URL, not in a flag of the module: two trainers in one process begin each for
itself, and so does a child after a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from rollyard.client import calls
from rollyard.client.address import Address
from rollyard.client.awaited import AsyncClient
from rollyard.client.flow import Flow, logger
from rollyard.client.persist import persist
from rollyard.client.site import Site
from rollyard.errors import RefusedError
from rollyard.slime.address import buffer_url
from rollyard.slime.start import start
from rollyard.slime.waiting import run_of

T = TypeVar("T")

_sessions: dict[tuple[int, str], Session] = {}


def session_of(args: Any, data_buffer: Any) -> Session:
    """The session of this process with a run. Another data buffer is another trainer, which begins anew."""
    url = buffer_url(args)
    key = (os.getpid(), url)
    session = _sessions.get(key)
    if session is None or session.data_buffer is not data_buffer:
        session = _sessions[key] = Session(url, data_buffer, retries_of(args))
    return session


def retries_of(args: Any) -> int | None:
    """How many calls may fail before a step does; `None`, which slime writes as -1, is without end."""
    times = getattr(args, "fetch_trajectory_retry_times", None)
    return None if times is None or int(times) < 0 else int(times)


class Session:
    """A trainer and its run."""

    def __init__(self, url: str, data_buffer: Any, retries: int | None) -> None:
        self.address = Address.of(url)
        self.data_buffer = data_buffer
        self.retries = retries
        self._has_begun = False
        # Leases whose samples are in the data buffer, by the step that they are to be committed with.
        self._owed: dict[int, list[int]] = {}

    async def begin(self, client: AsyncClient, args: Any, step: int) -> None:
        """On the first call: starts the rollouts, and takes back what came after the trainer's checkpoint."""
        if self._has_begun:
            return
        site = client._site
        await client._do(start(site, args, self.data_buffer.get_metadata()))
        await self._do(client, partial(self._rewind, site, step - 1), "rewinding")
        run = await self._do(client, partial(run_of, site), "looking at the run")
        if run["config"]["normalize"] != "none" and normalizes(args):
            logger.warning(
                "rewards are normalised by the run (normalize = %r) and again by the trainer; leave it to "
                "one, with --disable-rewards-normalization or with the knob normalize = none: %s",
                run["config"]["normalize"],
                self.address.shown,
            )
        self._has_begun = True

    def _rewind(self, site: Site, step: int) -> Flow[None]:
        try:
            yield from calls.rewind(site, step)
        except RefusedError as error:
            if error.code != "too_far_back":
                raise
            message = (
                f"the trainer begins after step {step}, but {error.message}. A training from the start or "
                "from an older checkpoint needs a run of its own: --rollout-buffer-url "
                "http://HOST:8889/runs/NAME. With a larger keep_commits, said before it is needed, a run "
                f"goes back further: {self.address.shown}"
            )
            raise RefusedError(message, status=error.status, code=error.code) from error

    def owe(self, step: int, lease: int) -> None:
        """Notes that a lease's samples are in the data buffer: from here on it must not come again."""
        self._owed.setdefault(step, []).append(lease)

    async def settle(self, client: AsyncClient) -> None:
        """Acks and commits what is owed. What cannot be settled now stays owed until the next call."""
        for step, leases in sorted(self._owed.items()):
            for lease in leases:
                await self._do(client, partial(calls.ack, client._site, lease), "an ack")
            await self._do(client, partial(calls.commit, client._site, step, leases), "a commit")
            del self._owed[step]

    async def _do(self, client: AsyncClient, call: Callable[[], Flow[T]], what: str) -> T:
        return await client._do(persist(call, what=what, retries=self.retries))


def normalizes(args: Any) -> bool:
    """Whether slime normalises rewards too; its flag is kept under the opposite name."""
    if getattr(args, "disable_rewards_normalization", False):
        return False
    return bool(getattr(args, "rewards_normalization", True))
