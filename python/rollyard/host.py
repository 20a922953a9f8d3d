"""A worker process: user code on an asyncio loop, told what to do through a pipe.

Run as `python -m rollyard.host` by Rollyard, never by hand. The pipe is standard input and output, moved out
of the way before any user code is imported: what that prints goes to standard error and cannot break a frame.
The process ends when the pipe does, even if user code has blocked the loop.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from rollyard import _rollyard, workflow_context
from rollyard.agent_runner import AgentRunner
from rollyard.agents import made_agent
from rollyard.engines import InferenceEngine
from rollyard.errors import EngineError, WorkflowError
from rollyard.importing import import_path
from rollyard.resolve import resolve_workflow
from rollyard.returned import Part, WrongTypeError, parts_of, plain, told
from rollyard.workflow_context import WorkflowContext

_HEAD = struct.Struct("<IQ")

Order = dict[str, Any]


class Pipe:
    """Frames in and out: the lengths of header and body, the header as JSON, the body."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
        self._output = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        # Children of user code must not keep the pipe open when this process is gone.
        os.set_inheritable(self._output, False)
        self._lock = threading.Lock()

    def read(self) -> Order | None:
        """The next order; `None` at the end of the pipe."""
        head = self._input.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        header_len, body_len = _HEAD.unpack(head)
        header = self._input.read(header_len + body_len)
        if len(header) < header_len + body_len:
            return None
        order: Order = json.loads(header[:header_len])
        return order

    def write(self, reply: dict[str, Any], body: list[memoryview]) -> None:
        header = json.dumps(reply, allow_nan=False).encode()
        head = _HEAD.pack(len(header), sum(len(piece) for piece in body))
        with self._lock:
            for piece in [memoryview(head + header), *body]:
                left = piece
                while left:
                    left = left[os.write(self._output, left) :]


class Functions:
    """Runs functions that are not async in threads, so that the loop goes on meanwhile."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rollyard function")
        self._threads = threads
        self._abandoned = 0

    async def call(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        call = functools.partial(copy_context().run, function, *args, **kwargs)
        running = self._pool.submit(call)
        try:
            value = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            # A thread cannot be ended from outside. When all of them hang, the process can.
            if running.running():
                self._abandoned += 1
                running.add_done_callback(self._came_back)
                if self._abandoned >= self._threads:
                    _end(f"all {self._threads} threads hang in functions that did not return in time")
            raise
        return await value if inspect.isawaitable(value) else value

    def _came_back(self, _: Any) -> None:
        self._abandoned -= 1


class Worker:
    """What is loaded, what is running, and who is to be told."""

    def __init__(self, pipe: Pipe, start: Order) -> None:
        self._pipe = pipe
        self._loop = asyncio.new_event_loop()
        self._functions = Functions(start["threads"])
        self._engine = None if start["engine"] is None else InferenceEngine.from_config(start["engine"])
        self._loaded: dict[int, Any] = {}
        self._failed: dict[int, str] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._orders: deque[Order] = deque()

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        threading.Thread(target=self._listen, name="rollyard pipe", daemon=True).start()
        self._reply(0, "done")
        self._loop.run_forever()

    def _listen(self) -> None:
        while (order := self._pipe.read()) is not None:
            self._orders.append(order)
            # One wake-up for all that came since the loop last looked.
            if len(self._orders) == 1:
                self._loop.call_soon_threadsafe(self._take)
        os._exit(0)

    def _take(self) -> None:
        # An order leaves when it was obeyed: until then, others need no wake-up.
        while self._orders:
            try:
                self._obey(self._orders[0])
            finally:
                self._orders.popleft()

    def _obey(self, order: Order) -> None:
        number = order["id"]
        match order["do"]:
            case "cancel":
                if number in self._running:
                    self._running[number].cancel()
            case "load":
                self._load(number, order["handle"], order["load"])
            case "episode":
                self._begin(number, self._episode(number, order))
            case "call":
                self._begin(number, self._call(number, order))
            case "set_version":
                if self._engine is not None:
                    self._engine.set_version(order["version"])
                self._reply(number, "done")
            case "pause" | "resume" as what:
                self._begin(number, self._hold(number, what))

    def _begin(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._running[number] = task
        task.add_done_callback(lambda _: self._running.pop(number, None))

    def _load(self, number: int, handle: int, load: dict[str, Any]) -> None:
        try:
            if load["kind"] == "workflow":
                self._loaded[handle] = resolve_workflow(load["path"], load["kwargs"])
            elif load["kind"] == "agent":
                run = made_agent(load["path"], load["kwargs"])
                self._loaded[handle] = AgentRunner(run, environment=load["environment"]).call
            else:
                self._loaded[handle] = import_path(load["path"], callable, "a function")
        except WorkflowError as error:
            self._failed[handle] = str(error)
            self._raised(number, str(error), False)
        else:
            self._reply(number, "done")

    async def _episode(self, number: int, order: Order) -> None:
        workflow_context.set(WorkflowContext(**order["context"]))
        try:
            workflow = self._get(order["handle"])
            self._returned(number, *parts_of(await workflow.arun_episode(self._engine, order["data"])))
        except WrongTypeError as error:
            self._reply(number, {"wrong_type": {"found": str(error)}})
        except BaseException as error:
            # Even SystemExit ends only the episode that raised it. If it was cancelled, nobody waits any
            # more.
            self._raised(number, *told(error))

    async def _call(self, number: int, order: Order) -> None:
        arguments = order["arguments"]
        try:
            function = self._get(order["handle"])
            value = await self._functions.call(function, arguments["args"], arguments["kwargs"])
            self._reply(number, {"value": plain(value)})
        except BaseException as error:
            self._raised(number, *told(error))

    async def _hold(self, number: int, what: str) -> None:
        if self._engine is not None:
            try:
                await asyncio.to_thread(self._engine.pause if what == "pause" else self._engine.resume)
            except EngineError as error:
                self._raised(number, *told(error))
                return
        self._reply(number, "done")

    def _get(self, handle: int) -> Any:
        if handle in self._failed:
            raise WorkflowError(self._failed[handle])
        return self._loaded[handle]

    def _returned(self, number: int, arrays: str, parts: list[Part]) -> None:
        body: list[memoryview] = []
        told_parts = []
        for tensors, reward, messages, text, extra in parts:
            named = None
            if tensors is not None:
                named = [{"key": key, "dtype": dtype, "shape": shape} for key, dtype, shape, _ in tensors]
                body += [array.data for *_, array in tensors]
            told_parts.append(
                {
                    "tensors": named,
                    "reward": reward,
                    "messages": [json.loads(message) for message in messages],
                    "text": text,
                    "extra": json.loads(extra),
                }
            )
        self._reply(number, {"returned": {"arrays": arrays, "parts": told_parts}}, body)

    def _raised(self, number: int, text: str, may_pass: bool) -> None:
        self._reply(number, {"raised": {"told": text, "may_pass": may_pass}})

    def _reply(self, number: int, answer: Any, body: list[memoryview] | None = None) -> None:
        stats = json.loads(_rollyard.recorded(True))
        self._pipe.write({"id": number, "answer": answer, "stats": stats}, body or [])


def _end(why: str) -> None:
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    os._exit(3)


def main() -> None:
    pipe = Pipe()
    start = pipe.read()
    if start is None:
        return
    sys.path[:0] = [folder for folder in start["sys_path"] if folder not in sys.path]
    try:
        worker = Worker(pipe, start)
    except Exception as error:
        raised = {"told": told(error)[0], "may_pass": False}
        pipe.write({"id": 0, "answer": {"raised": raised}}, [])
        return
    worker.run()


if __name__ == "__main__":
    main()
