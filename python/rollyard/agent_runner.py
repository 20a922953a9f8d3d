"""Calls an agent with what it asks for, on whichever loop it runs."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from rollyard import workflow_context
from rollyard.workflow import AgentWorkflowError
from rollyard.workflow_context import WorkflowContext

# Any of them says where to ask.
_ADDRESSES = {"base_url", "api_key", "http_client"}

# The variables of a process are one: whoever sets them has it to itself.
_alone = asyncio.Lock()


class AgentRunner:
    """`async def run(data, …)` with the keyword arguments that it takes."""

    def __init__(self, run: Callable[..., Any], *, environment: bool | None = None) -> None:
        self._run = run
        parameters = list(inspect.signature(run).parameters.values())
        if not parameters:
            raise AgentWorkflowError(f"{_name(run)}() takes no data; write async def run(data, …)")
        self._takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self._takes = {one.name for one in parameters[1:] if one.kind is not one.VAR_POSITIONAL}
        if environment is None:
            environment = not self._takes_all and not self._takes & _ADDRESSES
        self.environment = environment

    def check_here(self) -> None:
        """In this process many episodes run at once, so its variables cannot say where each is to ask."""
        if self.environment:
            raise AgentWorkflowError(
                f"{_name(self._run)} takes none of base_url, api_key and http_client, so it must be told in "
                "the environment where to ask: use worker processes (processes=N), or take one of them"
            )

    async def call(self, data: Any, told: Mapping[str, Any]) -> Any:
        """What the agent returns. `told` is where to ask, and which episode it is."""
        context = WorkflowContext(**told["context"])
        workflow_context.set(context)
        access = told["access"]
        async with AsyncExitStack() as open_until_then:
            if self.environment:
                await open_until_then.enter_async_context(_alone)
                open_until_then.enter_context(_variables(told["variables"]))
            given = {"base_url": access["base_url"], "api_key": access["api_key"], "model": access["model"]}
            given = {name: value for name, value in given.items() if self._wants(name)}
            if self._wants("context"):
                given["context"] = context
            if self._wants("http_client"):
                given["http_client"] = client = _http_client()
                if client is not None:
                    # Not entered, which can be done once: the agent may want to.
                    open_until_then.push_async_callback(client.aclose)
            return await self._run(data, **given)

    def _wants(self, name: str) -> bool:
        return self._takes_all or name in self._takes


def _name(run: Callable[..., Any]) -> str:
    return str(getattr(run, "__qualname__", run))


@contextmanager
def _variables(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _http_client() -> Any:
    """A client of this episode's own, so that an agent may close it. `None` without httpx."""
    try:
        import httpx
    except ImportError:
        return None
    # An answer may take long; the episode has a limit of its own. No proxy would find this machine.
    timeout = httpx.Timeout(None, connect=10.0)
    return httpx.AsyncClient(timeout=timeout, verify=_certificates(), mounts={"all://127.0.0.1": None})


@functools.cache
def _certificates() -> Any:
    """Read once: it takes longer than an answer."""
    import httpx

    return httpx.create_ssl_context()
