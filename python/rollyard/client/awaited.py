"""The client that awaits, on any number of event loops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import httpx

from rollyard.client import calls
from rollyard.client.contents import ClientBase, LeaseBase, lease_number
from rollyard.client.flow import Answer, Failure, Flow, Outcome, Pause, Step, logger
from rollyard.client.results import (
    Books,
    Done,
    Fate,
    Granted,
    LeaseStatus,
    RunStats,
    Sample,
    WriteManyResult,
    WriteResult,
)
from rollyard.client.site import Site
from rollyard.errors import RollyardError
from rollyard.rollouts import RolloutBatch

T = TypeVar("T")


class AsyncClient(ClientBase):
    """`Client`, awaited: the same calls with the same arguments and results.

    A call that is cancelled closes its connection. A lease that was on its way goes back to the pool at once,
    because the server sees that nobody read it.
    """

    def __setstate__(self, site: Site) -> None:
        super().__setstate__(site)
        # By process and event loop: neither can use what another has opened.
        self._connections: dict[tuple[int, asyncio.AbstractEventLoop], httpx.AsyncClient] = {}

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes this event loop's connections. Leases that are out stay out."""
        self._closed = True
        home = (os.getpid(), asyncio.get_running_loop())
        connections = self._connections.pop(home, None)
        if connections is not None:
            await connections.aclose()

    async def write(self, rollout: Mapping[str, Any]) -> WriteResult:
        """`Client.write`, awaited."""
        return await self._do(calls.write(self._site, rollout))

    async def write_many(
        self, rollouts: Iterable[Mapping[str, Any]], *, progress: Callable[[int], object] | None = None
    ) -> WriteManyResult:
        """`Client.write_many`, awaited."""
        return await self._do(calls.write_many(self._site, rollouts, progress))

    async def lease(
        self,
        *,
        groups: int | None = None,
        wait_secs: float = 0.0,
        lease_secs: float | None = None,
        reader: str | None = None,
    ) -> AsyncLease | None:
        """`Client.lease`, awaited."""
        terms = calls.LeaseTerms(groups, wait_secs, lease_secs, reader)
        granted = await self._do(calls.lease(self._site, terms))
        return None if granted is None else AsyncLease(self, granted)

    async def add_batches(
        self, batches: Iterable[RolloutBatch], *, progress: Callable[[int], object] | None = None
    ) -> WriteManyResult:
        """`Client.add_batches`, awaited."""
        return await self._do(calls.add_batches(self._site, batches, progress))

    async def set_step(self, step: int) -> Done:
        """`Client.set_step`, awaited."""
        return await self._do(calls.set_step(self._site, step))

    async def sample(
        self,
        step: int,
        rollouts: int,
        *,
        process_id: int = 0,
        total_processes: int = 1,
        wait_secs: float = 0.0,
        lease_secs: float | None = None,
        reader: str | None = None,
    ) -> Sample | None:
        """`Client.sample`, awaited."""
        terms = calls.DrawTerms(step, rollouts, process_id, total_processes, wait_secs, lease_secs, reader)
        return await self._do(calls.sample(self._site, terms))

    async def pool(self) -> dict[str, Any]:
        """`Client.pool`, awaited."""
        return await self._do(calls.pool(self._site))

    async def fetch(self, lease: int) -> AsyncLease:
        """`Client.fetch`, awaited."""
        return AsyncLease(self, await self._do(calls.fetch(self._site, lease)))

    async def leases(self) -> list[LeaseStatus]:
        """`Client.leases`, awaited."""
        return await self._do(calls.leases(self._site))

    async def ack(self, lease: AsyncLease | Sample | int) -> Done:
        """`Client.ack`, awaited."""
        return await self._do(calls.ack(self._site, lease_number(lease)))

    async def give_back(self, lease: AsyncLease | Sample | int) -> Done:
        """`Client.give_back`, awaited."""
        return await self._do(calls.give_back(self._site, lease_number(lease)))

    async def extend(self, lease: AsyncLease | Sample | int, *, secs: float) -> Done:
        """`Client.extend`, awaited."""
        return await self._do(calls.extend(self._site, lease_number(lease), secs))

    async def commit(self, step: int, *, leases: Sequence[int] | None = None) -> Done:
        """`Client.commit`, awaited."""
        return await self._do(calls.commit(self._site, step, leases))

    async def rewind(self, step: int) -> Done:
        """`Client.rewind`, awaited."""
        return await self._do(calls.rewind(self._site, step))

    async def set_version(self, version: int) -> Done:
        """`Client.set_version`, awaited."""
        return await self._do(calls.set_version(self._site, version))

    async def drop(self, uid: str) -> Done:
        """`Client.drop`, awaited."""
        return await self._do(calls.drop(self._site, uid))

    async def fate(self, uid: str) -> Fate:
        """`Client.fate`, awaited."""
        return await self._do(calls.fate(self._site, uid))

    async def known(self, uids: Iterable[str]) -> set[str]:
        """`Client.known`, awaited."""
        return await self._do(calls.known(self._site, uids))

    async def close_group(self, instance_id: str) -> Books:
        """`Client.close_group`, awaited."""
        return await self._do(calls.close_group(self._site, instance_id))

    async def books(self) -> Books:
        """`Client.books`, awaited."""
        return await self._do(calls.books(self._site))

    async def stats(self) -> RunStats:
        """`Client.stats`, awaited."""
        return await self._do(calls.stats(self._site))

    async def configure(self, **knobs: object) -> RunStats:
        """`Client.configure`, awaited."""
        return await self._do(calls.configure(self._site, knobs))

    async def make_run(self, **knobs: object) -> RunStats:
        """`Client.make_run`, awaited."""
        return await self._do(calls.make_run(self._site, knobs))

    async def runs(self) -> list[RunStats]:
        """`Client.runs`, awaited."""
        return await self._do(calls.runs(self._site))

    async def _do(self, flow: Flow[T]) -> T:
        go_on = partial(flow.send, None)
        while True:
            try:
                step = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                go_on = partial(flow.send, await self._take(step))
            except BaseException as stopped:
                # The flow may have something to put in order first.
                go_on = partial(flow.throw, stopped)

    async def _take(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.secs)
            return None
        try:
            http = self._http()
            request = http.build_request(**step.http_options())
            reply = await http.send(step.unsigned(request))
        except httpx.RequestError as error:
            return Failure(error)
        return Answer(reply.status_code, reply.headers, reply.content)

    def _http(self) -> httpx.AsyncClient:
        self._check_open()
        home = (os.getpid(), asyncio.get_running_loop())
        if home not in self._connections:
            self._connections[home] = httpx.AsyncClient(**self._site.http_options())
        return self._connections[home]


class AsyncLease(LeaseBase):
    """`Lease`, awaited: use it with `async with`."""

    __slots__ = ("_client",)

    def __init__(self, client: AsyncClient, granted: Granted) -> None:
        super().__init__(granted)
        self._client = client

    async def ack(self) -> Done:
        """`Lease.ack`, awaited."""
        done = await self._client.ack(self)
        self._settled = True
        return done

    async def give_back(self) -> Done:
        """`Lease.give_back`, awaited."""
        done = await self._client.give_back(self)
        self._settled = True
        return done

    async def extend(self, *, secs: float) -> Done:
        """`Lease.extend`, awaited."""
        return await self._client.extend(self, secs=secs)

    async def __aenter__(self) -> AsyncLease:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._settled:
            return
        if error is None:
            await self.ack()
            return
        try:
            await self._client._do(calls.give_back(self._client._site.in_haste(), self.id))
            self._settled = True
        except RollyardError as trouble:
            # What is on its way up matters more; the lease ends by itself.
            logger.warning("lease %d is not given back, it will run out: %s", self.id, trouble)
