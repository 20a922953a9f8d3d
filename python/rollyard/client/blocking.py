"""The client that blocks: from any thread, and after a fork."""

from __future__ import annotations

import os
import time
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


class Client(ClientBase):
    """A client of a Rollyard server, for one run.

    `url` is `ROLLYARD_URL` or http://127.0.0.1:8889 if left out, `token` is `ROLLYARD_TOKEN`. A call that
    fails on its way, or that the server puts off, is made again up to `retries` times with growing pauses;
    every call may be repeated. Connections belong to the process that opened them: after a fork the child
    opens its own.
    """

    def __setstate__(self, site: Site) -> None:
        super().__setstate__(site)
        # By process id. A dictionary and no lock: a lock that another thread holds at a fork stays locked.
        self._connections: dict[int, httpx.Client] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes this process's connections. Leases that are out stay out."""
        self._closed = True
        connections = self._connections.pop(os.getpid(), None)
        if connections is not None:
            connections.close()

    def write(self, rollout: Mapping[str, Any]) -> WriteResult:
        """Stores a rollout; durable when this returns.

        One without a `uid` gets one before it is first sent, so that a retry is recognised; your mapping is
        left as it is, and the result has the uid.
        """
        return self._do(calls.write(self._site, rollout))

    def write_many(
        self, rollouts: Iterable[Mapping[str, Any]], *, progress: Callable[[int], object] | None = None
    ) -> WriteManyResult:
        """Stores rollouts in bodies of a few megabytes; each stands for itself.

        A bad one is in the result's `rejected` with its index and uid, and keeps no other from being stored.
        `progress` is called after each body with how many rollouts are answered for so far.
        """
        return self._do(calls.write_many(self._site, rollouts, progress))

    def lease(
        self,
        *,
        groups: int | None = None,
        wait_secs: float = 0.0,
        lease_secs: float | None = None,
        reader: str | None = None,
    ) -> Lease | None:
        """Takes so many groups (all that are ready if left out), waiting up to `wait_secs` for them.

        `None` if there were not enough in time. The lease runs out after `lease_secs`, or what the run says.
        `reader` is your name on the books; host and process id if left out.
        """
        terms = calls.LeaseTerms(groups, wait_secs, lease_secs, reader)
        granted = self._do(calls.lease(self._site, terms))
        return None if granted is None else Lease(self, granted)

    def add_batches(
        self, batches: Iterable[RolloutBatch], *, progress: Callable[[int], object] | None = None
    ) -> WriteManyResult:
        """Stores rollouts to the token, as groups of the sizes they have; for runs in replay mode.

        A rollout without metadata takes its batch's.
        """
        return self._do(calls.add_batches(self._site, batches, progress))

    def set_step(self, step: int) -> Done:
        """Says where the trainer is; in replay mode, what is too old for it is dropped."""
        return self._do(calls.set_step(self._site, step))

    def sample(
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
        """Draws the batch of a step in a run in replay mode, waiting up to `wait_secs` for enough rollouts.

        `rollouts` is the batch of all processes together; each gets its share of the same one, and the same
        share when it asks again. `None` if there were not enough in time. Ack it, by one process for all.
        """
        terms = calls.DrawTerms(step, rollouts, process_id, total_processes, wait_secs, lease_secs, reader)
        return self._do(calls.sample(self._site, terms))

    def pool(self) -> dict[str, Any]:
        """What can be drawn in a run in replay mode, how old it is, and what was trained of what was made."""
        return self._do(calls.pool(self._site))

    def fetch(self, lease: int) -> Lease:
        """The groups of a lease once more, by its number."""
        return Lease(self, self._do(calls.fetch(self._site, lease)))

    def leases(self) -> list[LeaseStatus]:
        """The leases that are out, or acked and still possible to rewind."""
        return self._do(calls.leases(self._site))

    def ack(self, lease: Lease | Sample | int) -> Done:
        """Trained on it: the lease is final, up to a rewind."""
        return self._do(calls.ack(self._site, lease_number(lease)))

    def give_back(self, lease: Lease | Sample | int) -> Done:
        """Not wanted after all: the groups go back to where they stood."""
        return self._do(calls.give_back(self._site, lease_number(lease)))

    def extend(self, lease: Lease | Sample | int, *, secs: float) -> Done:
        """Still at work: keeps the lease for so many seconds from now."""
        return self._do(calls.extend(self._site, lease_number(lease), secs))

    def commit(self, step: int, *, leases: Sequence[int] | None = None) -> Done:
        """Ties acked leases, all or those named, to a checkpoint.

        With several readers name the leases: what another acked meanwhile may not be in your checkpoint.
        """
        return self._do(calls.commit(self._site, step, leases))

    def rewind(self, step: int) -> Done:
        """Puts back all that was consumed after a step: acked since, committed later, or still out."""
        return self._do(calls.rewind(self._site, step))

    def set_version(self, version: int) -> Done:
        """Says which weights are sampled with; rollouts without a version of their own get this one."""
        return self._do(calls.set_version(self._site, version))

    def drop(self, uid: str) -> Done:
        """Takes a held rollout out, with the reason `requested`."""
        return self._do(calls.drop(self._site, uid))

    def fate(self, uid: str) -> Fate:
        """Where a rollout is, or what became of it."""
        return self._do(calls.fate(self._site, uid))

    def known(self, uids: Iterable[str]) -> set[str]:
        """Those of the uids that were written before, whatever became of them."""
        return self._do(calls.known(self._site, uids))

    def close_group(self, instance_id: str) -> Books:
        """Stops waiting for more rollouts of an instance: its open group is used or dropped now."""
        return self._do(calls.close_group(self._site, instance_id))

    def books(self) -> Books:
        """Where every rollout of the run is."""
        return self._do(calls.books(self._site))

    def stats(self) -> RunStats:
        """The run: its knobs, its groups, its books."""
        return self._do(calls.stats(self._site))

    def configure(self, **knobs: object) -> RunStats:
        """Turns knobs of the run. What is not named stays as it is."""
        return self._do(calls.configure(self._site, knobs))

    def make_run(self, **knobs: object) -> RunStats:
        """Makes the run with these knobs, defaults for the rest. One that exists is left alone."""
        return self._do(calls.make_run(self._site, knobs))

    def runs(self) -> list[RunStats]:
        """All runs of the server."""
        return self._do(calls.runs(self._site))

    def _do(self, flow: Flow[T]) -> T:
        go_on = partial(flow.send, None)
        while True:
            try:
                step = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                go_on = partial(flow.send, self._take(step))
            except BaseException as stopped:
                # The flow may have something to put in order first.
                go_on = partial(flow.throw, stopped)

    def _take(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.secs)
            return None
        try:
            http = self._http()
            request = http.build_request(**step.http_options())
            reply = http.send(step.unsigned(request))
        except httpx.RequestError as error:
            return Failure(error)
        return Answer(reply.status_code, reply.headers, reply.content)

    def _http(self) -> httpx.Client:
        self._check_open()
        process = os.getpid()
        known = self._connections.get(process)
        if known is not None:
            return known
        fresh = httpx.Client(**self._site.http_options())
        kept = self._connections.setdefault(process, fresh)
        if kept is not fresh:
            # Another thread was first.
            fresh.close()
        return kept


class Lease(LeaseBase):
    """Groups on lease.

    As a context manager it is acked at the end of the block, and given back if an exception leaves it.
    """

    __slots__ = ("_client",)

    def __init__(self, client: Client, granted: Granted) -> None:
        super().__init__(granted)
        self._client = client

    def ack(self) -> Done:
        """Trained on it: the lease is final, up to a rewind."""
        done = self._client.ack(self)
        self._settled = True
        return done

    def give_back(self) -> Done:
        """Not wanted after all: the groups go back to where they stood."""
        done = self._client.give_back(self)
        self._settled = True
        return done

    def extend(self, *, secs: float) -> Done:
        """Still at work: keeps the lease for so many seconds from now."""
        return self._client.extend(self, secs=secs)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._settled:
            return
        if error is None:
            self.ack()
            return
        try:
            self._client._do(calls.give_back(self._client._site.in_haste(), self.id))
            self._settled = True
        except RollyardError as trouble:
            # What is on its way up matters more; the lease ends by itself.
            logger.warning("lease %d is not given back, it will run out: %s", self.id, trouble)
