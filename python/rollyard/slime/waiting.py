"""Waiting for the groups of a step, and knowing when they cannot come.

The call waits on the server, so groups are here as soon as they are ready. Between two calls the state of the
run is looked at and told: a training that stands still says why.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import socket
from collections.abc import Mapping
from functools import partial
from typing import Any

from rollyard.client import calls, results
from rollyard.client.awaited import AsyncClient, AsyncLease
from rollyard.client.flow import Flow, Request, ask, logger
from rollyard.client.persist import persist
from rollyard.client.site import Site
from rollyard.errors import RollyardError

# The first look is early: a generator that has finished for good need not be waited for.
WAIT_SECS_FIRST = 1.0
WAIT_SECS = 30.0

# Its name on the books.
READER = "slime-trainer"


class OutOfRolloutsError(RollyardError):
    """The generator has ended, and what is left does not make a batch."""


async def wait_for_groups(client: AsyncClient, groups: int, *, retries: int | None) -> AsyncLease:
    """Exactly so many groups, however long it takes; `retries` counts calls that fail, not waits."""
    site = client._site
    reader = f"{READER}:{socket.gethostname()}:{os.getpid()}/{secrets.token_hex(4)}"
    for wait_secs in itertools.chain([WAIT_SECS_FIRST], itertools.repeat(WAIT_SECS)):
        granted = await client._do(
            lease(site, calls.LeaseTerms(groups, wait_secs, None, reader), reader, retries)
        )
        if granted is not None:
            return AsyncLease(client, granted)
        look = persist(partial(run_of, site), what="looking at the run", retries=retries)
        run = await client._do(look)
        told = f"{groups} groups are waited for; {describe(run)}: {client.url}/runs/{client.run}"
        if is_out(run, groups):
            raise OutOfRolloutsError(told)
        # Most waits are short and nobody's business.
        logger.log(logging.WARNING if wait_secs == WAIT_SECS else logging.INFO, told)
    raise AssertionError("repeat() does not end")


def lease(
    site: Site, terms: calls.LeaseTerms, reader: str, retries: int | None
) -> Flow[results.Granted | None]:
    """One wait for a lease. All of a step have one name on the books, by which a lease is found whose answer
    was lost: it would be nobody's until it ran out."""

    def once() -> Flow[results.Granted | None]:
        yield from give_back_all(site, reader)
        return (yield from calls.wait_for_groups(site, terms, reader))

    try:
        return (yield from persist(once, what="leasing groups", retries=retries))
    except BaseException as stopped:
        if not isinstance(stopped, Exception):
            yield from calls.take_back(site, reader)
        raise


def give_back_all(site: Site, reader: str) -> Flow[None]:
    for status in (yield from calls.leases(site)):
        if status.reader == reader and status.status == "out":
            yield from calls.give_back(site, status.lease)


def run_of(site: Site) -> Flow[Mapping[str, Any]]:
    """The run as the server describes it, with what this client has no field for."""
    answer = yield from ask(site, Request("GET", site.run_path))
    told: Mapping[str, Any] = answer.json(site)
    return told


def is_out(run: Mapping[str, Any], groups: int) -> bool:
    """Whether so many groups can never come. Of a generator that nobody knows of, more may always come."""
    if (run.get("generator") or {}).get("state") not in ("finished", "failed"):
        return False
    # An open group closes by its timeout, hooks may use a posed one, and a lease that is out may come back.
    may_come = run["open_groups"] + run["posed_groups"] + run["leases_out"]
    return may_come == 0 and bool(run["ready_groups"] < groups)


def describe(run: Mapping[str, Any]) -> str:
    """Where everything is, in a line."""
    generator = run.get("generator") or {}
    state = generator.get("state", "not known")
    if why := generator.get("problem") or generator.get("told"):
        state = f"{state} ({why})"
    books = run["books"]
    dropped = ", ".join(f"{count} {reason}" for reason, count in books["dropped_by_reason"].items())
    return (
        f"{run['ready_groups']} are ready, {run['open_groups']} open, {run['leases_out']} leases out; the "
        f"generator is {state}; of {books['admitted']} rollouts {books['held']} are held, "
        f"{books['leased']} leased, {books['trained']} trained, {books['dropped']} dropped"
        + (f" ({dropped})" if dropped else "")
    )
