"""A durable rollout buffer in FastAPI, as one would write it in an afternoon: the baseline of our benchmarks.

It keeps slime's calls and our semantics in the simplest way that is correct.
A write is validated, deduplicated by uid, appended to one file and synced before it is answered.
A read gives ready groups (valid, filtered, normalised, padded) exactly once, and a restart replays the file.

Where two simple ways would do, this takes the one that was faster on the machine of `docs/benchmarks.md`:
fdatasync in the default thread pool rather than in the event loop, and the body as it was received into the
file rather than the model written out again. uvicorn runs with uvloop and httptools, without an access log.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import socket
import statistics
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Row = dict[str, Any]


class Item(BaseModel):
    model_config = ConfigDict(extra="allow")

    uid: Annotated[str, Field(min_length=1)]
    instance_id: str | int
    messages: list[dict[str, Any]]
    reward: Annotated[float, Field(allow_inf_nan=False)]
    extra_info: dict[str, Any]


class ReadRequest(BaseModel):
    batch_size: int = -1


class Journal:
    """One append-only file of JSON lines; a line is durable when `append` returns."""

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
        self._path = path
        self._fsync = fsync

    def lines(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))

    async def append(self, value: bytes) -> None:
        # A line end inside JSON is only white space: within a string it would be escaped.
        line = value.replace(b"\n", b" ") + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError(f"the disk took only a part of {len(line)} bytes: {self._path}")
        await self.sync()

    async def sync(self) -> None:
        if self._fsync:
            await asyncio.to_thread(os.fdatasync, self._file)


class Buffer:
    """Open groups by instance, and the complete ones that wait to be read."""

    def __init__(self, *, group_size: int, group_timeout_seconds: float) -> None:
        self.group_size = group_size
        self.group_timeout_seconds = group_timeout_seconds
        self.seen: set[str] = set()
        # Ordered by last write, so that the timed-out groups are at the front.
        self.open: dict[str, tuple[float, list[Row]]] = {}
        self.ready: deque[list[Row]] = deque()
        self.rewards_since_read: dict[str, list[float]] = {}
        self.total_written = 0
        self.total_read = 0
        self.held = 0

    def add(self, row: Row) -> int:
        instance = str(row["instance_id"])
        _, group = self.open.pop(instance, (0.0, []))
        group.append(row)
        self.seen.add(row["uid"])
        self.total_written += 1
        self.held += 1
        self.rewards_since_read.setdefault(instance, []).append(row["reward"])
        if len(group) >= self.group_size:
            self.ready.append(group)
        else:
            self.open[instance] = (time.monotonic(), group)
        return len(group)

    def close_timed_out(self) -> None:
        oldest_allowed = time.monotonic() - self.group_timeout_seconds
        while self.open:
            instance, (last_write, group) = next(iter(self.open.items()))
            if last_write >= oldest_allowed:
                return
            del self.open[instance]
            if len(group) >= math.ceil(0.7 * self.group_size):
                self.ready.append(group)
            else:
                self.held -= len(group)

    def choose(self, batch_size: int) -> tuple[int, list[Row]]:
        """How many ready groups a read would take, and the rows it would return."""
        rows: list[Row] = []
        for taken, group in enumerate(self.ready):
            processed = process(group, self.group_size)
            if processed and 0 <= batch_size < len(rows) + len(processed):
                return taken, rows
            rows.extend(processed)
        return len(self.ready), rows

    def take(self, groups: int) -> list[str]:
        uids = [row["uid"] for _ in range(groups) for row in self.ready.popleft()]
        self.held -= len(uids)
        self.total_read += len(uids)
        self.rewards_since_read.clear()
        return uids

    def skip(self, uid: str) -> None:
        """An item of the file that was read in an earlier life."""
        self.seen.add(uid)
        self.total_written += 1
        self.total_read += 1

    def meta_info(self) -> Row:
        rewards = [reward for group in self.rewards_since_read.values() for reward in group]
        groups = len(self.rewards_since_read)
        return {
            "total_samples": len(rewards),
            "num_groups": groups,
            "avg_group_size": len(rewards) / groups if groups else 0,
            "avg_reward": statistics.fmean(rewards) if rewards else 0,
            "reward_min": min(rewards, default=0),
            "reward_max": max(rewards, default=0),
            "reward_std": statistics.stdev(rewards) if len(rewards) > 1 else 0,
            "finished_groups": [group[0]["instance_id"] for group in self.ready],
        }


def process(group: list[Row], group_size: int) -> list[Row]:
    """A group as a trainer wants it; empty when it is not worth training on."""
    if len({row["reward"] for row in group}) == 1:
        return []
    rows = [dict(row) for row in group if 0 <= row["reward"] <= 1]
    missing = group_size - len(rows)
    if len(rows) < math.ceil(0.7 * group_size) or missing > len(rows):
        return []
    rewards = [row["reward"] for row in rows]
    mean, std = statistics.fmean(rewards), statistics.pstdev(rewards)
    for row in rows:
        row["raw_reward"] = row["reward"]
        if any(rewards):
            row["reward"] = 0.0 if std < 1e-8 else (row["reward"] - mean) / (std + 1e-8)
        row["reward"] *= group_size / len(rows)
    for row in rows[:missing]:
        row["reward"] /= 2
    copies = [{**row, "uid": f"{row['uid']}-pad", "padded": True} for row in rows[:missing]]
    return rows + copies


def envelope(
    message: str, *, success: bool = True, data: list[Row] | None = None, meta_info: Row | None = None
) -> Row:
    return {
        "success": success,
        "message": message,
        "data": {"data": data or [], "meta_info": meta_info or {}},
    }


def make_app(buffer: Buffer, journal: Journal) -> FastAPI:
    app = FastAPI()

    @app.post("/buffer/write")
    async def write(request: Request) -> Row:
        body = await request.body()
        try:
            row = Item.model_validate_json(body).model_dump()
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_context=False, include_input=False)) from error
        if row["uid"] in buffer.seen:
            # The first copy may still be on its way to the disk.
            await journal.sync()
            return envelope("Already written", meta_info={"duplicate": True})
        buffer.seen.add(row["uid"])
        try:
            await journal.append(body)
        except OSError:
            buffer.seen.discard(row["uid"])
            raise
        size = buffer.add(row)
        return envelope("Written", meta_info={"duplicate": False, "group_size_now": size})

    @app.post("/get_rollout_data")
    async def get_rollout_data(request: ReadRequest) -> Row:
        buffer.close_timed_out()
        taken, rows = buffer.choose(request.batch_size)
        if not rows or len(rows) < request.batch_size:
            return envelope("Not enough data is ready", success=False)
        meta_info = buffer.meta_info()
        # Taken before the wait for the disk, so that no other read can take them too.
        uids = buffer.take(taken)
        await journal.append(json.dumps({"taken": uids}).encode())
        return envelope(f"Read {len(rows)} items", data=rows, meta_info=meta_info)

    @app.get("/buffer/stats")
    async def stats() -> Row:
        return {
            "current_size": buffer.held,
            "total_written": buffer.total_written,
            "total_read": buffer.total_read,
        }

    @app.get("/healthz")
    async def healthz() -> Row:
        return {"status": "ok"}

    return app


TAKEN = b'{"taken":'


def replay(buffer: Buffer, journal: Journal) -> None:
    # By uid, not by group: syncs overlap, so the order of the file need not be the order of arrival.
    taken = {uid for line in journal.lines() if line.startswith(TAKEN) for uid in json.loads(line)["taken"]}
    for line in journal.lines():
        if line.startswith(TAKEN):
            continue
        row = Item.model_validate_json(line).model_dump()
        if row["uid"] in taken:
            buffer.skip(row["uid"])
        else:
            buffer.add(row)


class TalkingServer(uvicorn.Server):
    """Says where it listens once it does, for port 0 is only known then.

    It is started with `run`, and uvicorn binds the socket. `asyncio.run(serve(sockets=[…]))` would use the
    loop of the standard library, which leaves Nagle's algorithm on for such a socket: every answer would
    wait 40 ms.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for bound in (bound for server in self.servers for bound in server.sockets):
            host, port = bound.getsockname()[:2]
            print(f"listening on http://{host}:{port}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:8889")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--group-timeout-seconds", type=float, default=300)
    parser.add_argument("--no-fsync", action="store_true", help="answer before the item is on the disk")
    args = parser.parse_args()

    args.data.mkdir(parents=True, exist_ok=True)
    buffer = Buffer(group_size=args.group_size, group_timeout_seconds=args.group_timeout_seconds)
    journal = Journal(args.data / "items.jsonl", fsync=not args.no_fsync)
    replay(buffer, journal)
    host, port = args.listen.rsplit(":", 1)
    app = make_app(buffer, journal)
    TalkingServer(uvicorn.Config(app, host=host, port=int(port), log_level="warning", access_log=False)).run()


if __name__ == "__main__":
    main()
