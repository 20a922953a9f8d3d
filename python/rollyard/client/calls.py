"""Every call of the API, as a flow of requests.

All of them may be repeated, which is what makes retries safe: a write is known by its uid, an ack and a
commit by their numbers. Where the server says of a repetition that there is nothing left to do, the flow
takes that for the yes whose answer was lost.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from rollyard import errors
from rollyard.client import direct, encode, flow, results
from rollyard.client.flow import Flow, Pause, Request
from rollyard.client.site import Site
from rollyard.rollouts import RolloutBatch

T = TypeVar("T")

# A wait is cut into calls of this length, because what lies between client and server may end an idle one.
POLL_SECS_MAX = 50.0
# The server takes no more uids in one call.
KNOWN_MAX = 10_000
# What was stored is not there for the run's owner: the rollout goes whole.
STORE_AGAIN = (flow.OTHER_CLAIM, "not_stored", "no_blobs")


def write(site: Site, rollout: Mapping[str, Any]) -> Flow[results.WriteResult]:
    line = encode.encode(rollout)
    [one] = yield from direct.lighten(site, [line])
    try:
        answer = yield from flow.ask(site, Request("POST", f"{site.buffer_path}/write", one.content))
    except errors.ServerError as error:
        if error.code not in STORE_AGAIN:
            raise
        answer = yield from flow.ask(site, Request("POST", f"{site.buffer_path}/write", line.content))
    told = answer.json(site)["data"]["meta_info"]
    return results.read(results.WriteResult, told, uid=line.uid)


@dataclass(slots=True)
class Tally:
    """What has become of the rollouts of a `write_many` so far."""

    accepted: int = 0
    duplicates: int = 0
    rejected: list[results.RejectedRollout] = field(default_factory=list)
    uids: list[str | None] = field(default_factory=list)

    def reject(self, line: encode.Line, told: Mapping[str, Any]) -> None:
        known = results.RejectedRollout(
            line.index, line.uid, told["code"], told["message"], told.get("field")
        )
        self.rejected.append(known)

    def leave_out(self, bad: encode.BadLine) -> None:
        known = results.RejectedRollout(bad.index, bad.uid, "not_json", str(bad.error), bad.error.field)
        self.rejected.append(known)

    def result(self) -> results.WriteManyResult:
        rejected = tuple(sorted(self.rejected, key=lambda one: one.index))
        return results.WriteManyResult(self.accepted, self.duplicates, rejected, tuple(self.uids))


def write_many(
    site: Site, rollouts: Iterable[Mapping[str, Any]], progress: Callable[[int], object] | None
) -> Flow[results.WriteManyResult]:
    return write_encoded(site, encode.encode_all(rollouts), progress)


def add_batches(
    site: Site, batches: Iterable[RolloutBatch], progress: Callable[[int], object] | None
) -> Flow[results.WriteManyResult]:
    return write_encoded(site, encode.encode_batches(batches), progress)


def write_encoded(
    site: Site, lines: Iterable[encode.Line | encode.BadLine], progress: Callable[[int], object] | None
) -> Flow[results.WriteManyResult]:
    tally = Tally()
    for body in encode.bodies(lines):
        tally.uids.extend(line.uid for line in body)
        for bad in body:
            if isinstance(bad, encode.BadLine):
                tally.leave_out(bad)
        yield from write_lines(site, [line for line in body if isinstance(line, encode.Line)], tally)
        if progress is not None:
            progress(len(tally.uids))
    return tally.result()


def write_lines(site: Site, lines: list[encode.Line], tally: Tally) -> Flow[None]:
    """Sends lines until each is stored or refused for good; those that found the run full are tried again."""
    sendable = yield from direct.lighten(site, lines)
    for attempt in itertools.count():
        if not sendable:
            return
        content = b"\n".join(one.content for one in sendable)
        request = Request("POST", f"{site.run_path}/rollouts", content, "application/x-ndjson")
        try:
            answer = yield from flow.ask(site, request)
        except errors.ServerError as error:
            if error.code in STORE_AGAIN:
                sendable = [one.whole() for one in sendable]
                continue
            if not isinstance(error, errors.RefusedError) or error.status != 413:
                raise
            yield from halve(site, [one.line for one in sendable], error, tally)
            return
        told = answer.json(site)
        tally.accepted += told["accepted"]
        tally.duplicates += told["duplicates"]
        again = []
        for refused in told["rejected"]:
            one = sendable[refused["line"] - 1]
            if attempt < site.retries and refused["code"] in STORE_AGAIN:
                again.append(one.whole())
            elif attempt < site.retries and refused["code"] in ("full", "paced"):
                again.append(one)
            else:
                tally.reject(one.line, refused)
        sendable = again
        if sendable:
            yield Pause(flow.pause_secs(attempt, answer))


def halve(site: Site, lines: list[encode.Line], error: errors.RefusedError, tally: Tally) -> Flow[None]:
    """What is too large together may pass in parts; a line that is too large alone is refused alone."""
    if len(lines) == 1:
        tally.reject(lines[0], {"code": error.code, "message": error.message})
        return
    middle = len(lines) // 2
    yield from write_lines(site, lines[:middle], tally)
    yield from write_lines(site, lines[middle:], tally)


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    groups: int | None
    wait_secs: float
    lease_secs: float | None
    reader: str | None


def lease(site: Site, terms: LeaseTerms) -> Flow[results.Granted | None]:
    """Asks until the groups are there or the wait is over.

    If the answer is lost, the server takes its lease back at once, where it can see that. It cannot if a
    proxy took the answer and died, or if whoever asks is interrupted with the answer in memory. So each call
    has a name of its own on the books, by which its lease is looked for and given back.
    """
    reader = f"{terms.reader or f'{socket.gethostname()}:{os.getpid()}'}/{secrets.token_hex(4)}"
    try:
        return (yield from wait_for_groups(site, terms, reader))
    except BaseException as stopped:
        if not isinstance(stopped, Exception):
            yield from take_back(site, reader)
        raise


def wait_for_groups(site: Site, terms: LeaseTerms, reader: str) -> Flow[results.Granted | None]:
    asked = {"groups": terms.groups, "lease_seconds": terms.lease_secs, "reader": reader}
    repeat = partial(take_back, site, reader)
    return poll(site, "lease", asked, terms.wait_secs, results.Granted.read, repeat)


def poll(
    site: Site,
    call: str,
    asked: Mapping[str, Any],
    wait_secs: float,
    read: Callable[[bytes], T | None],
    before_repeat: Callable[[], Flow[None]] | None = None,
) -> Flow[T | None]:
    """Makes a call that waits on the server, until it gives something or the wait is over."""
    deadline = time.monotonic() + wait_secs
    for attempt in itertools.count():
        asked_at = time.monotonic()
        secs = min(max(0.0, deadline - asked_at), POLL_SECS_MAX)
        request = post(f"{site.run_path}/{call}", {**asked, "wait_seconds": secs}, wait_secs=secs)
        answer = yield from flow.ask(site, request, before_repeat=before_repeat)
        found = answer.read(site, read)
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            return None
        if time.monotonic() - asked_at < secs / 2:
            # A server that is about to stop answers early; the next one may have what is wanted.
            yield Pause(flow.pause_secs(attempt, answer))
    raise AssertionError("count() does not end")


@dataclass(frozen=True, slots=True)
class DrawTerms:
    step: int
    rollouts: int
    process_id: int
    total_processes: int
    wait_secs: float
    lease_secs: float | None
    reader: str | None


def sample(site: Site, terms: DrawTerms) -> Flow[results.Sample | None]:
    """One batch is drawn for a step, so that asking again, for whatever reason, gives the same."""
    asked = {
        "step": terms.step,
        "rollouts": terms.rollouts,
        "process_id": terms.process_id,
        "total_processes": terms.total_processes,
        "lease_seconds": terms.lease_secs,
        "reader": terms.reader or f"{socket.gethostname()}:{os.getpid()}",
    }
    return poll(site, "sample", asked, terms.wait_secs, results.Sample.read)


def set_step(site: Site, step: int) -> Flow[results.Done]:
    return done(site, post(f"{site.run_path}/step", {"step": step}))


def pool(site: Site) -> Flow[dict[str, Any]]:
    answer = yield from flow.ask(site, Request("GET", f"{site.run_path}/pool"))
    told: dict[str, Any] = answer.json(site)
    return told


def take_back(site: Site, reader: str) -> Flow[None]:
    """Gives back what a reader has out, in one short try; if that fails, the lease ends by running out."""
    hasty = site.in_haste()
    try:
        for status in (yield from leases(hasty)):
            if status.reader == reader and status.status == "out":
                yield from give_back(hasty, status.lease)
    except errors.RollyardError as trouble:
        flow.logger.info("whether a lease of %s is out is not known: %s", reader, trouble)


def fetch(site: Site, lease: int) -> Flow[results.Granted]:
    answer = yield from flow.ask(site, Request("GET", f"{site.run_path}/leases/{lease}"))
    granted = answer.read(site, results.Granted.read)
    assert granted is not None, "a lease that is answered for has a number"
    return granted


def leases(site: Site) -> Flow[list[results.LeaseStatus]]:
    answer = yield from flow.ask(site, Request("GET", f"{site.run_path}/leases"))
    return [results.read(results.LeaseStatus, told) for told in answer.json(site)]


def ack(site: Site, lease: int) -> Flow[results.Done]:
    return done(site, Request("POST", f"{site.run_path}/leases/{lease}/ack"))


def give_back(site: Site, lease: int) -> Flow[results.Done]:
    return done(site, Request("POST", f"{site.run_path}/leases/{lease}/return"), over="lease_gone")


def extend(site: Site, lease: int, secs: float) -> Flow[results.Done]:
    return done(site, post(f"{site.run_path}/leases/{lease}/extend", {"seconds": secs}))


def commit(site: Site, step: int, leases: Sequence[int] | None) -> Flow[results.Done]:
    named = None if leases is None else list(leases)
    return done(site, post(f"{site.run_path}/commit", {"step": step, "leases": named}))


def rewind(site: Site, step: int) -> Flow[results.Done]:
    return done(site, post(f"{site.run_path}/rewind", {"step": step}))


def set_version(site: Site, version: int) -> Flow[results.Done]:
    return done(site, post(f"{site.run_path}/version", {"version": version}))


def drop(site: Site, uid: str) -> Flow[results.Done]:
    request = Request("DELETE", f"{site.run_path}/rollouts/{quote(uid, safe='')}")
    return done(site, request, over="rollout_unknown")


def fate(site: Site, uid: str) -> Flow[results.Fate]:
    answer = yield from flow.ask(site, Request("GET", f"{site.run_path}/rollouts/{quote(uid, safe='')}"))
    return results.read(results.Fate, answer.json(site))


def known(site: Site, uids: Iterable[str]) -> Flow[set[str]]:
    found: set[str] = set()
    left = iter(uids)
    while block := list(itertools.islice(left, KNOWN_MAX)):
        answer = yield from flow.ask(site, post(f"{site.run_path}/known", {"uids": block}))
        found.update(answer.json(site)["known"])
    return found


def books(site: Site) -> Flow[results.Books]:
    answer = yield from flow.ask(site, Request("GET", f"{site.run_path}/books"))
    return results.read(results.Books, answer.json(site))


def close_group(site: Site, instance_id: str) -> Flow[results.Books]:
    request = post(f"{site.run_path}/close_group", {"instance_id": instance_id})
    answer = yield from ask_unless_over(site, request, over="no_open_group")
    return (yield from books(site)) if answer is None else results.read(results.Books, answer.json(site))


def stats(site: Site) -> Flow[results.RunStats]:
    return run_stats(site, Request("GET", site.run_path))


def configure(site: Site, knobs: Mapping[str, Any]) -> Flow[results.RunStats]:
    return run_stats(site, Request("PATCH", site.run_path, encode.to_json(knobs)))


def make_run(site: Site, knobs: Mapping[str, Any]) -> Flow[results.RunStats]:
    return run_stats(site, post("/api/runs", {"name": site.run, "config": dict(knobs)}))


def runs(site: Site) -> Flow[list[results.RunStats]]:
    answer = yield from flow.ask(site, Request("GET", "/api/runs"))
    return [results.RunStats.read(told) for told in answer.json(site)]


def run_stats(site: Site, request: Request) -> Flow[results.RunStats]:
    answer = yield from flow.ask(site, request)
    return results.RunStats.read(answer.json(site))


def done(site: Site, request: Request, *, over: str | None = None) -> Flow[results.Done]:
    answer = yield from ask_unless_over(site, request, over=over)
    if answer is None:
        return results.Done(changed=False, books=(yield from books(site)))
    return results.Done.read(answer.json(site))


def ask_unless_over(site: Site, request: Request, *, over: str | None) -> Flow[flow.Answer | None]:
    """`None` if a repetition is refused with the code `over`: the try before it got through."""
    try:
        return (yield from flow.ask(site, request))
    except errors.ServerError as error:
        if over is None or error.code != over or not error.repeated:
            raise
        return None


def post(path: str, fields: Mapping[str, Any], *, wait_secs: float = 0.0) -> Request:
    given = {name: value for name, value in fields.items() if value is not None}
    return Request("POST", path, json.dumps(given).encode(), wait_secs=wait_secs)
